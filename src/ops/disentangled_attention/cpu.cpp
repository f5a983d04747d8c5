// SPDX-License-Identifier: Apache-2.0
// Rows are shared out; where each of their columns looks is worked out once for a run.
#include "base/element.h"
#include "ops/disentangled_attention/op.h"
#include "tactic/vector_tactic.h"

namespace tw::ops::disentangled_attention {

namespace {

template <class T>
void addRow(RunArgs& args, int64_t row, int64_t s, int64_t width, float factor, int32_t const* positions)
{
    // positions[d + s - 1]: of i - j = d.
    int64_t const i = row % s;
    T const* const content = args.inputs[0].as<T>() + row * s;
    T const* const to = args.inputs[1].as<T>() + row * width;
    T const* const from = args.inputs[2].as<T>() + (row - i) * width;
    T* const y = args.outputs[0].as<T>() + row * s;
    for (int64_t j = 0; j < s; ++j) {
        int64_t const t = positions[i - j + s - 1];
        storeElement(y[j], (loadElement(content[j]) + loadElement(to[t]) + loadElement(from[j * width + t])) * factor);
    }
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    TensorRef const& y = args.outputs[0];
    if (y.count() == 0)
        return {};
    int64_t const s = y.dims[1];
    auto* const positions = static_cast<int32_t*>(args.workspace);
    for (int64_t d = 1 - s; d < s; ++d)
        positions[d + s - 1] = int32_t(positionOf(d, a.span, s));
    inPieces(*args.workers, y.dims[0] * s, 4 * y.sizeBytes(), [&](int64_t begin, int64_t end) {
        withFloat(y.type, [&](auto element) {
            for (int64_t row = begin; row < end; ++row)
                addRow<decltype(element)>(args, row, s, 2 * a.span, float(a.factor), positions);
        });
    });
    return {};
}

int64_t workspace(ir::Node const&, std::span<TensorRef const> inputs, std::span<TensorRef const>)
{
    return 2 * inputs[0].dims[1] * int64_t(sizeof(int32_t));
}

constexpr PlainTactic kPlain{"disentangled_attention_any_plain_cpu", 1, run, workspace};

} // namespace

extern constinit TacticList const cpuTactics = kTactics<kPlain>;

} // namespace tw::ops::disentangled_attention
