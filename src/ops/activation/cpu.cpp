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
    if (x.type == DataType::kInt8) {
        double from[256], to[256];
        int8_t table[256]; // by the byte of x
        for (int i = 0; i < 256; ++i)
            from[i] = int8_t(uint8_t(i));
        activate(attrs, from, to, 256);
        for (int i = 0; i < 256; ++i)
            table[i] = saturateToInt8(to[i]);
        for (int64_t i = 0; i < count; ++i)
            y.as<int8_t>()[i] = table[x.as<uint8_t>()[i]];
        return {};
    }
    if (x.type == DataType::kFloat) {
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
    PointwiseSpec spec;
    spec.program.inputs = 1;
    spec.program.steps = {
        {kernels::jit::PointwiseCode::kActivation, 0, 0, kernels::jit::ActivationKind(a.kind), a.alpha, a.beta}};
    spec.inputs = {{0}};
    return spec;
}

using kernels::jit::Isa;
constexpr PointwiseTactic kAvx512{"activation_f32_jit_avx512", 1, Isa::kAvx512, specOf};
constexpr PointwiseTactic kAvx2{"activation_f32_jit_avx2", 1, Isa::kAvx2, specOf};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kAvx512, &kAvx2, &kPlain};
    return kList;
}

} // namespace tw::ops::activation
