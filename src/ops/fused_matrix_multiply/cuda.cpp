// SPDX-License-Identifier: Apache-2.0
#include "families/gemm/cuda_cublaslt.h"
#include "families/gemm/cuda_gemm_f32.h"
#include "families/gemm/cuda_gemm_wgmma.h"
#include "families/gemm/cuda_plain_gemm.h"
#include "ops/fused_matrix_multiply/op.h"

namespace tw::ops::fused_matrix_multiply {

namespace {

CudaKernels generate(Problem const& p, Config const&)
{
    return multiplyKernels(p, 2, 3, p.node->attrsAs<Attrs>().activation, multiplyGeometry);
}

constexpr CudaProductOp kGemm{
    .geometry = [](ir::Node const& node, Extents const& a,
                   Extents const& b) { return geometryOf(node.attrsAs<Attrs>(), a, b); },
    .operations = [](ir::Node const& node) -> matrix_multiply::Attrs { return node.attrsAs<Attrs>(); },
    .activation = [](ir::Node const& node) -> FusedActivation const& { return node.attrsAs<Attrs>().activation; },
    .bias = 2,
    .residual = 3,
};
constexpr CudaTactic kHalf = gemmF16Tactic<kGemm, GemmF16Way::kHalf>("fused_matrix_multiply_f16_wgmma_cuda", 3);
constexpr CudaTactic kHalfMma = gemmF16Tactic<kGemm, GemmF16Way::kHalfMma>("fused_matrix_multiply_f16_mma_cuda", 1);
constexpr CudaTactic kTf32 = gemmF16Tactic<kGemm, GemmF16Way::kTf32>("fused_matrix_multiply_tf32_wgmma_cuda", 1);
constexpr CudaTactic kThreeTf32 =
    gemmF16Tactic<kGemm, GemmF16Way::kThreeTf32>("fused_matrix_multiply_f32_wgmma_cuda", 1);
constexpr CudaTactic kTf32Mma = gemmF32Tactic<kGemm, GemmF32Way::kTf32>("fused_matrix_multiply_tf32_mma_cuda", 1);
constexpr CudaTactic kF32Mma = gemmF32Tactic<kGemm, GemmF32Way::kThreeTf32>("fused_matrix_multiply_f32_mma_cuda", 1);
constexpr CudaTactic kF32 = gemmF32Tactic<kGemm, GemmF32Way::kCores>("fused_matrix_multiply_f32_cuda", 1);
constexpr CublasLtTactic kCublasLt{"fused_matrix_multiply_cublaslt", 1, kGemm};
constexpr CublasLtTactic kCublasLtTf32{"fused_matrix_multiply_tf32_cublaslt", 1, kGemm, true};
constexpr CudaTactic kPlain{"fused_matrix_multiply_plain_cuda", 1, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kHalf,   &kHalfMma, &kTf32,     &kThreeTf32,    &kTf32Mma,
                                              &kF32Mma, &kF32,     &kCublasLt, &kCublasLtTf32, &kPlain};
    return kList;
}

} // namespace tw::ops::fused_matrix_multiply
