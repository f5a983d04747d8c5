// SPDX-License-Identifier: Apache-2.0
#include "families/gemm/gemv_tactic.h"
#include "families/gemm/plain_gemm.h"
#include "ops/matrix_multiply/op.h"

namespace tw::ops::matrix_multiply {

namespace {

Result<void> run(ir::Node const& node, RunArgs& args)
{
    multiplyPlain(node.attrsAs<Attrs>(), args.inputs[0], args.inputs[1], args.outputs[0], args.workspace);
    return {};
}

int64_t workspace(ir::Node const& node, std::span<TensorRef const> in, std::span<TensorRef const>)
{
    return multiplyPlainWorkspaceBytes(node.attrsAs<Attrs>(), in[0], in[1]);
}

constexpr PlainTactic kPlain{"matrix_multiply_plain", 1, run, workspace};

matrix_multiply::Geometry geometry(ir::Node const& node, Extents const& a, Extents const& b)
{
    return geometryOf(node.attrsAs<Attrs>(), a, b);
}

constexpr GemmOp kGemm{geometry, nullptr};
constexpr GemmTactic kAvx512{"matrix_multiply_f32_jit_avx512", 1, kernels::jit::Isa::kAvx512, kGemm};
constexpr GemmTactic kAvx2{"matrix_multiply_f32_jit_avx2", 1, kernels::jit::Isa::kAvx2, kGemm};
constexpr GemvTactic kFewRowsAvx512{"matrix_multiply_f32_few_rows_avx512", 1, kernels::jit::Isa::kAvx512, kGemm};
constexpr GemvTactic kFewRowsAvx2{"matrix_multiply_f32_few_rows_avx2", 1, kernels::jit::Isa::kAvx2, kGemm};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kFewRowsAvx512, &kFewRowsAvx2, &kAvx512, &kAvx2, &kPlain};
    return kList;
}

} // namespace tw::ops::matrix_multiply
