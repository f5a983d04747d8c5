// SPDX-License-Identifier: Apache-2.0
#include "families/gemm/cuda_cublaslt.h"
#include "families/gemm/cuda_gemm_f32.h"
#include "families/gemm/cuda_gemm_i8.h"
#include "families/gemm/cuda_gemm_sparse.h"
#include "families/gemm/cuda_gemm_wgmma.h"
#include "families/gemm/cuda_gemv_i8.h"
#include "families/gemm/cuda_product_norm.h"
#include "ops/matrix_multiply/op.h"

namespace tw::ops::matrix_multiply {

namespace {

constexpr CudaTactic kNorm = gemmTactic<GemmAlgorithm::kNorm>("matrix_multiply_f16_wgmma_norm_sm90a", 1);
constexpr CudaTactic kNormApart = product_norm::tactic("matrix_multiply_f16_wgmma_then_norm_sm90a");
constexpr CudaTactic kHalf = gemmTactic<GemmAlgorithm::kHalf>("matrix_multiply_f16_wgmma_sm90a", 3);
constexpr CudaTactic kSparse = gemm_sparse::tactic<DataType::kHalf>("matrix_multiply_f16_sparse_wgmma_sm90a", 1);
constexpr CudaTactic kSparseInt8 = gemm_sparse::tactic<DataType::kInt8>("matrix_multiply_i8_sparse_wgmma_sm90a", 1);
constexpr CudaTactic kInt8 = gemmTactic<GemmAlgorithm::kInt8>("matrix_multiply_i8_wgmma_sm90a", 2);
constexpr CudaTactic kHalfMma = gemmTactic<GemmAlgorithm::kHalfMma>("matrix_multiply_f16_mma_sm80", 1);
constexpr CudaTactic kTf32 = gemmTactic<GemmAlgorithm::kTf32>("matrix_multiply_tf32_wgmma_sm90a", 1);
constexpr CudaTactic kTf32x3 = gemmTactic<GemmAlgorithm::kTf32x3>("matrix_multiply_f32_tf32x3_wgmma_sm90a", 1);
constexpr CudaTactic kTf32Mma = gemmF32Tactic<GemmF32Algorithm::kTf32>("matrix_multiply_tf32_mma_sm80", 1);
constexpr CudaTactic kF32Mma = gemmF32Tactic<GemmF32Algorithm::kTf32x3>("matrix_multiply_f32_tf32x3_mma_sm80", 1);
constexpr CudaTactic kF32 = gemmF32Tactic<GemmF32Algorithm::kCores>("matrix_multiply_f32_simt_sm80", 1);
constexpr CudaTactic kI8Mma = gemm_i8::tactic("matrix_multiply_i8_mma_sm80", 1);
constexpr CudaTactic kI8Vectors = gemv_i8::tactic("matrix_multiply_i8_gemv_sm80", 1);
constexpr CublasLtTactic kCublasLt{"matrix_multiply_any_cublaslt_cuda", 1};
constexpr CublasLtTactic kCublasLtTf32{"matrix_multiply_tf32_cublaslt_cuda", 1, true};
constexpr auto kNarrow = DataType::kBf16;
constexpr CudaTactic kBf16Norm = gemmTactic<GemmAlgorithm::kNorm, kNarrow>("matrix_multiply_bf16_wgmma_norm_sm90a", 1);
constexpr CudaTactic kBf16NormApart = product_norm::tactic<kNarrow>("matrix_multiply_bf16_wgmma_then_norm_sm90a");
constexpr CudaTactic kBf16 = gemmTactic<GemmAlgorithm::kHalf, kNarrow>("matrix_multiply_bf16_wgmma_sm90a", 1);
constexpr CudaTactic kBf16Mma = gemmTactic<GemmAlgorithm::kHalfMma, kNarrow>("matrix_multiply_bf16_mma_sm80", 1);
constexpr CudaTactic kPlain{"matrix_multiply_any_plain_cuda", 1, product_norm::generatePlain};

} // namespace

extern constinit TacticList const cudaTactics =
    kTactics<kNorm, kNormApart, kSparse, kSparseInt8, kInt8, kHalf, kHalfMma, kTf32, kTf32x3, kTf32Mma, kF32Mma, kF32,
             kBf16Norm, kBf16NormApart, kBf16, kBf16Mma, kI8Mma, kI8Vectors, kCublasLt, kCublasLtTf32, kPlain>;

} // namespace tw::ops::matrix_multiply
