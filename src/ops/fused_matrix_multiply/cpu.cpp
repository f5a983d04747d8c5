// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "families/gemm/gemv_tactic.h"
#include "families/gemm/plain_gemm.h"
#include "ops/fused_matrix_multiply/op.h"
#include "tactic/blocks.h"

namespace tw::ops::fused_matrix_multiply {

namespace {

// Rows of y, a block at a time: bias, residual and activation while the block is in cache.
void finish(TensorRef const& y, TensorRef const& bias, TensorRef const& residual, FusedActivation const& f)
{
    int64_t const count = y.count(), n = bias.data ? bias.count() : count;
    float yBuffer[kBlock], otherBuffer[kBlock];
    for (int64_t row = 0; row < count; row += n)
        for (int64_t at = 0; at < n; at += kBlock) {
            int64_t const m = std::min(kBlock, n - at);
            if (bias.data || residual.data) {
                float const* from = loadFloats(y.type, y.data, row + at, 1, m, yBuffer);
                float* to = floatsAt(y.type, y.data, row + at, yBuffer);
                if (bias.data) {
                    float const* add = loadFloats(bias.type, bias.data, at, 1, m, otherBuffer);
                    for (int64_t i = 0; i < m; ++i)
                        to[i] = from[i] + add[i];
                    from = to;
                }
                if (residual.data) {
                    float const* add = loadFloats(residual.type, residual.data, row + at, 1, m, otherBuffer);
                    for (int64_t i = 0; i < m; ++i)
                        to[i] = from[i] + add[i];
                }
                if (f.any())
                    activate(f, to, to, m);
                storeFloats(y.type, y.data, row + at, m, to);
            } else {
                activateElements(f, y.type, static_cast<std::byte*>(y.data) + (row + at) * sizeOf(y.type), m);
            }
        }
}

Result<void> run(ir::Node const& node, RunArgs& args)
{
    auto const& a = node.attrsAs<Attrs>();
    auto optional = [&](size_t i) { return i < args.inputs.size() ? args.inputs[i] : TensorRef{}; };
    multiplyPlain(a, args.inputs[0], args.inputs[1], args.outputs[0], args.workspace);
    if (args.outputs[0].count() > 0)
        finish(args.outputs[0], optional(2), optional(3), a.activation);
    return {};
}

int64_t workspace(ir::Node const& node, std::span<TensorRef const> in, std::span<TensorRef const>)
{
    return multiplyPlainWorkspaceBytes(node.attrsAs<Attrs>(), in[0], in[1]);
}

constexpr PlainTactic kPlain{"fused_matrix_multiply_plain", 1, run, workspace};

matrix_multiply::Geometry geometry(ir::Node const& node, Extents const& a, Extents const& b)
{
    return geometryOf(node.attrsAs<Attrs>(), a, b);
}

FusedActivation const& activationOf(ir::Node const& node)
{
    return node.attrsAs<Attrs>().activation;
}

constexpr GemmOp kGemm{geometry, activationOf};
constexpr GemmTactic kAvx512{"fused_matrix_multiply_f32_jit_avx512", 1, kernels::jit::Isa::kAvx512, kGemm};
constexpr GemmTactic kAvx2{"fused_matrix_multiply_f32_jit_avx2", 1, kernels::jit::Isa::kAvx2, kGemm};
constexpr GemvTactic kFewRowsAvx512{"fused_matrix_multiply_f32_few_rows_avx512", 1, kernels::jit::Isa::kAvx512, kGemm};
constexpr GemvTactic kFewRowsAvx2{"fused_matrix_multiply_f32_few_rows_avx2", 1, kernels::jit::Isa::kAvx2, kGemm};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kFewRowsAvx512, &kFewRowsAvx2, &kAvx512, &kAvx2, &kPlain};
    return kList;
}

} // namespace tw::ops::fused_matrix_multiply
