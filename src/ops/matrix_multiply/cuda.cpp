// SPDX-License-Identifier: Apache-2.0
#include "families/gemm/cuda_cublaslt.h"
#include "families/gemm/cuda_gemm.h"
#include "ops/matrix_multiply/op.h"

namespace tw::ops::matrix_multiply {

namespace {

using enum GemmAlgorithm;

constexpr CudaTactic kF16Norm = gemmTactic<kCudaGemm, kNorm>("matrix_multiply_f16_wgmma_norm_sm90a");
constexpr CudaTactic kNormApart = gemmTactic<kCudaGemmThenNorm, kHalf>("matrix_multiply_f16_wgmma_then_norm_sm90a");
constexpr CudaTactic kF16 = gemmTactic<kCudaGemm, kHalf>("matrix_multiply_f16_wgmma_sm90a", 3);
constexpr CudaTactic kF16First = gemmTactic<kCudaGemm, kFirst>("matrix_multiply_f16_wgmma_of_norm_sm90a");
constexpr CudaTactic kFirstApart = gemmTactic<kCudaNormThenGemm, kHalf>("matrix_multiply_f16_norm_then_wgmma_sm90a");
constexpr CudaTactic kSparse = gemmTactic<kCudaGemmSparse, kHalf>("matrix_multiply_f16_sparse_wgmma_sm90a");
constexpr CudaTactic kSparseInt8 = gemmTactic<kCudaGemmSparse, kInt8>("matrix_multiply_i8_sparse_wgmma_sm90a");
constexpr CudaTactic kI8 = gemmTactic<kCudaGemm, kInt8>("matrix_multiply_i8_wgmma_sm90a", 2);
constexpr CudaTactic kF16Mma = gemmTactic<kCudaGemm, kHalfMma>("matrix_multiply_f16_mma_sm80");
constexpr CudaTactic kTf32Gemm = gemmTactic<kCudaGemm, kTf32>("matrix_multiply_tf32_wgmma_sm90a");
constexpr CudaTactic kF32x3 = gemmTactic<kCudaGemm, kTf32x3>("matrix_multiply_f32_tf32x3_wgmma_sm90a");
constexpr CudaTactic kTf32Mma = gemmTactic<kCudaGemmF32, kTf32>("matrix_multiply_tf32_mma_sm80");
constexpr CudaTactic kF32Mma = gemmTactic<kCudaGemmF32, kTf32x3>("matrix_multiply_f32_tf32x3_mma_sm80");
constexpr CudaTactic kF32 = gemmTactic<kCudaGemmF32, kFloat>("matrix_multiply_f32_simt_sm80");
constexpr CudaTactic kI8Mma = gemmTactic<kCudaGemmI8, kInt8>("matrix_multiply_i8_mma_sm80");
constexpr CudaTactic kI8Vectors = gemmTactic<kCudaGemvI8, kInt8>("matrix_multiply_i8_gemv_sm80");
constexpr CudaTactic kF16Vectors = gemmTactic<kCudaGemvF16, kHalf>("matrix_multiply_f16_gemv_sm80");
constexpr CublasLtTactic kCublasLt{"matrix_multiply_any_cublaslt_cuda", 1};
constexpr CublasLtTactic kCublasLtTf32{"matrix_multiply_tf32_cublaslt_cuda", 1, true};
constexpr auto kNarrow = DataType::kBf16;
constexpr CudaTactic kBf16Norm = gemmTactic<kCudaGemm, kNorm, kNarrow>("matrix_multiply_bf16_wgmma_norm_sm90a");
constexpr CudaTactic kBf16NormApart =
    gemmTactic<kCudaGemmThenNorm, kHalf, kNarrow>("matrix_multiply_bf16_wgmma_then_norm_sm90a");
constexpr CudaTactic kBf16 = gemmTactic<kCudaGemm, kHalf, kNarrow>("matrix_multiply_bf16_wgmma_sm90a");
constexpr CudaTactic kBf16Mma = gemmTactic<kCudaGemm, kHalfMma, kNarrow>("matrix_multiply_bf16_mma_sm80");
constexpr CudaTactic kBf16Vectors = gemmTactic<kCudaGemvF16, kHalf, kNarrow>("matrix_multiply_bf16_gemv_sm80");
constexpr CudaTactic kPlain{"matrix_multiply_any_plain_cuda", 1, plainGemm};

} // namespace

extern constinit TacticList const cudaTactics =
    kTactics<kF16Norm, kNormApart, kF16First, kFirstApart, kSparse, kSparseInt8, kI8, kF16, kF16Mma, kTf32Gemm, kF32x3,
             kTf32Mma, kF32Mma, kF32, kBf16Norm, kBf16NormApart, kBf16, kBf16Mma, kI8Mma, kI8Vectors, kF16Vectors,
             kBf16Vectors, kCublasLt, kCublasLtTf32, kPlain>;

} // namespace tw::ops::matrix_multiply
