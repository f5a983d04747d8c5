// SPDX-License-Identifier: Apache-2.0
#include "families/gemm/cuda_cublaslt.h"
#include "families/gemm/cuda_gemm_f32.h"
#include "families/gemm/cuda_gemm_wgmma.h"
#include "families/gemm/cuda_plain_gemm.h"
#include "ops/fully_connected/op.h"

namespace tw::ops::fully_connected {

namespace {

CudaKernels generate(Problem const& p, Config const&)
{
    return multiplyKernels(p, 2, -1, FusedActivation(), connectedGeometry);
}

constexpr CudaProductOp kGemm{
    .geometry = [](ir::Node const&, Extents const& x, Extents const& w) { return geometryOf(x, w); },
    .operations =
        [](ir::Node const&) {
            matrix_multiply::Attrs a;
            a.b = matrix_multiply::MatrixOperation::kTranspose;
            return a;
        },
    .bias = 2,
};
constexpr CudaTactic kHalf = gemmF16Tactic<kGemm, GemmF16Way::kHalf>("fully_connected_f16_wgmma_cuda", 3);
constexpr CudaTactic kHalfMma = gemmF16Tactic<kGemm, GemmF16Way::kHalfMma>("fully_connected_f16_mma_cuda", 1);
constexpr CudaTactic kTf32 = gemmF16Tactic<kGemm, GemmF16Way::kTf32>("fully_connected_tf32_wgmma_cuda", 1);
constexpr CudaTactic kThreeTf32 = gemmF16Tactic<kGemm, GemmF16Way::kThreeTf32>("fully_connected_f32_wgmma_cuda", 1);
constexpr CudaTactic kTf32Mma = gemmF32Tactic<kGemm, GemmF32Way::kTf32>("fully_connected_tf32_mma_cuda", 1);
constexpr CudaTactic kF32Mma = gemmF32Tactic<kGemm, GemmF32Way::kThreeTf32>("fully_connected_f32_mma_cuda", 1);
constexpr CudaTactic kF32 = gemmF32Tactic<kGemm, GemmF32Way::kCores>("fully_connected_f32_cuda", 1);
constexpr CublasLtTactic kCublasLt{"fully_connected_cublaslt", 1, kGemm};
constexpr CublasLtTactic kCublasLtTf32{"fully_connected_tf32_cublaslt", 1, kGemm, true};
constexpr CudaTactic kPlain{"fully_connected_plain_cuda", 1, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kHalf,   &kHalfMma, &kTf32,     &kThreeTf32,    &kTf32Mma,
                                              &kF32Mma, &kF32,     &kCublasLt, &kCublasLtTf32, &kPlain};
    return kList;
}

} // namespace tw::ops::fully_connected
