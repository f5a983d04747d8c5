// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/cuda_epilogue.h"
#include "families/elementwise/cuda_pointwise.h"
#include "ops/pointwise/op.h"

namespace tw::ops::pointwise {

namespace {

// Scalars and numbers of a channel as tensors of y's rank that are broadcast.
void views(ir::Node const& node, RunArgs const& args, Extents& y, Extents* operands)
{
    auto const& a = node.attrsAs<Attrs>();
    for (size_t i = 0; i < args.inputs.size(); ++i) {
        auto const kind = InputKind(a.inputs[i * kNumbersOfInput]);
        if (kind == InputKind::kBroadcast)
            continue;
        operands[i].rank = y.rank;
        for (int d = 0; d < y.rank; ++d)
            operands[i][d] = 1;
        if (kind == InputKind::kChannel) {
            int const axis = int(a.inputs[i * kNumbersOfInput + 1]);
            operands[i][axis] = y[axis];
        }
    }
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const&)
{
    auto const& a = p.node->attrsAs<Attrs>();
    Pointwise what{"pointwise", {}, "", views, true};
    for (int i = 0; i < int(p.inputs.size()); ++i)
        what.inputs.push_back(i);
    what.text = stepsSource("apply", stepsOf(a.steps, a.parameters), int(p.inputs.size()), p.outputs[0].type,
                            isQuantized(*p.node));
    return pointwiseKernels(p, what);
}

std::vector<Formats> formats(Problem const& p)
{
    std::vector<int> inputs;
    for (size_t i = 0; i < p.inputs.size(); ++i)
        inputs.push_back(int(i));
    return pointwiseFormats(p, inputs, views);
}

constexpr CudaTactic kPlain{"pointwise_any_plain_cuda", 5, generate, nullptr, nullptr, formats};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::pointwise
