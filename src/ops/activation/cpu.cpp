// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "families/elementwise/activate.h"
#include "families/elementwise/pointwise_jit.h"
#include "ops/activation/op.h"
#include "tactic/blocks.h"

namespace tw::ops::activation {

namespace {

Result<void> run(ir::Node const& node, RunArgs& args)
{
    auto const& attrs = node.attrsAs<Attrs>();
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    int64_t const count = y.count();
    if (isQuantized(x.type)) {
        applyToBytes(x.as<int8_t>(), y.as<int8_t>(), count,
                     [&](double const* from, double* to, int64_t n) { activate(attrs, from, to, n); });
        return {};
    }
    if (isFullFloat(x.type)) {
        activate(attrs, x.as<float>(), y.as<float>(), count);
        return {};
    }
    float in[kBlock], out[kBlock];
    for (int64_t at = 0; at < count; at += kBlock) {
        int64_t const n = std::min(kBlock, count - at);
        activate(attrs, loadFloats(x.type, x.data, at, 1, n, in), out, n);
        storeFloats(y.type, y.data, at, n, out);
    }
    return {};
}

constexpr PlainTactic kPlain{"activation_any_plain_cpu", 1, run};

// One step of an emitted expression.
Result<PointwiseSpec> specOf(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    return stepSpec({StepCode::kActivation, 0, 0, ActivationKind(a.kind), a.alpha, a.beta}, 1);
}

} // namespace

extern constinit TacticList const cpuTactics = kPointwiseTactics<"activation", specOf, kPlain>;

} // namespace tw::ops::activation
