// SPDX-License-Identifier: Apache-2.0
#include "families/gemm/tactics.h"
#include "ops/matrix_multiply/op.h"
#include "tactic/cpu_tactic.h"

namespace tw::ops::matrix_multiply {

namespace {

using kernels::jit::Factors;
using kernels::jit::GemvWeights;
using kernels::jit::Isa;
constexpr CpuTactic kFewRowsAvx512{"matrix_multiply_f32_gemv_avx512", 1, Isa::kAvx512, kGemv};
constexpr CpuTactic kFewRowsAvx2{"matrix_multiply_f32_gemv_avx2", 1, Isa::kAvx2, kGemv};
constexpr CpuTactic kBf16FewRowsAvx512{
    "matrix_multiply_bf16_gemv_avx512", 1, Isa::kAvx512, kGemv, GemvWeights::kBfloat16, Rounding::kBf16};
constexpr CpuTactic kBf16FewRowsAvx2{
    "matrix_multiply_bf16_gemv_avx2", 1, Isa::kAvx2, kGemv, GemvWeights::kBfloat16, Rounding::kBf16};
constexpr CpuTactic kHalfFewRowsAvx512{
    "matrix_multiply_f32f16_gemv_avx512", 1, Isa::kAvx512, kGemv, GemvWeights::kHalf, Rounding::kHalfWeights};
constexpr CpuTactic kHalfFewRowsAvx2{
    "matrix_multiply_f32f16_gemv_avx2", 1, Isa::kAvx2, kGemv, GemvWeights::kHalf, Rounding::kHalfWeights};
// Weights that are numbers of 16 bits, as networks of FP16 and BF16 have them, whose products are those of floats.
constexpr CpuTactic kOfHalfFewRowsAvx512{"matrix_multiply_f32_gemv_of_f16_avx512", 1, Isa::kAvx512, kGemv,
                                         GemvWeights::kHalf};
constexpr CpuTactic kOfHalfFewRowsAvx2{"matrix_multiply_f32_gemv_of_f16_avx2", 1, Isa::kAvx2, kGemv,
                                       GemvWeights::kHalf};
constexpr CpuTactic kOfBf16FewRowsAvx512{"matrix_multiply_f32_gemv_of_bf16_avx512", 1, Isa::kAvx512, kGemv,
                                         GemvWeights::kBfloat16};
constexpr CpuTactic kOfBf16FewRowsAvx2{"matrix_multiply_f32_gemv_of_bf16_avx2", 1, Isa::kAvx2, kGemv,
                                       GemvWeights::kBfloat16};
constexpr CpuTactic kAvx512{"matrix_multiply_f32_gemm_avx512", 1, Isa::kAvx512, kFloatGemm};
constexpr CpuTactic kAvx2{"matrix_multiply_f32_gemm_avx2", 1, Isa::kAvx2, kFloatGemm};
constexpr CpuTactic kOfHalfAvx512{"matrix_multiply_f32_gemm_of_f16_avx512", 1, Isa::kAvx512, kNarrowGemm,
                                  GemvWeights::kHalf};
constexpr CpuTactic kOfHalfAvx2{"matrix_multiply_f32_gemm_of_f16_avx2", 1, Isa::kAvx2, kNarrowGemm, GemvWeights::kHalf};
constexpr CpuTactic kOfBf16Avx512{"matrix_multiply_f32_gemm_of_bf16_avx512", 1, Isa::kAvx512, kNarrowGemm,
                                  GemvWeights::kBfloat16};
constexpr CpuTactic kOfBf16Avx2{"matrix_multiply_f32_gemm_of_bf16_avx2", 1, Isa::kAvx2, kNarrowGemm,
                                GemvWeights::kBfloat16};
// Whatever weights are.
constexpr CpuTactic kAnyAvx512{"matrix_multiply_f32_gemm_avx512", 1, Isa::kAvx512, kGemm};
constexpr CpuTactic kAnyAvx2{"matrix_multiply_f32_gemm_avx2", 1, Isa::kAvx2, kGemm};
constexpr CpuTactic kBf16Amx{
    "matrix_multiply_bf16_gemm_amx", 1, Isa::kAvx512, kGemm, Factors::kBf16Tiles, Rounding::kBf16};
constexpr CpuTactic kBf16Avx512{
    "matrix_multiply_bf16_gemm_avx512", 1, Isa::kAvx512, kGemm, Factors::kBf16Dots, Rounding::kBf16};
constexpr CpuTactic kBf16Avx2{
    "matrix_multiply_bf16_gemm_avx2", 1, Isa::kAvx2, kGemm, Factors::kBf16Shifts, Rounding::kBf16};
constexpr CpuTactic kInt8Avx512Vnni{"matrix_multiply_i8_gemm_vnni_avx512", 1, Isa::kAvx512, kInt8Gemm,
                                    Factors::kByteDots};
constexpr CpuTactic kInt8AvxVnni{"matrix_multiply_i8_gemm_vnni_avx2", 1, Isa::kAvx2, kInt8Gemm, Factors::kByteDots};
constexpr CpuTactic kInt8Avx512{"matrix_multiply_i8_gemm_avx512", 1, Isa::kAvx512, kInt8Gemm, Factors::kByteWords};
constexpr CpuTactic kInt8Avx2{"matrix_multiply_i8_gemm_avx2", 1, Isa::kAvx2, kInt8Gemm, Factors::kByteWords};
// Tensors of BF16, whose numbers are factors as they are.
constexpr WidenedTactic kTensorsAmx{"matrix_multiply_bf16_widened_gemm_amx", 1, kBf16Amx};
constexpr WidenedTactic kTensorsAvx512{"matrix_multiply_bf16_widened_gemm_avx512", 1, kBf16Avx512};
constexpr WidenedTactic kTensorsAvx2{"matrix_multiply_bf16_widened_gemm_avx2", 1, kBf16Avx2};
constexpr WidenedTactic kTensorsFewRowsAvx512{"matrix_multiply_bf16_widened_gemv_avx512", 1, kBf16FewRowsAvx512};
constexpr WidenedTactic kTensorsFewRowsAvx2{"matrix_multiply_bf16_widened_gemv_avx2", 1, kBf16FewRowsAvx2};
constexpr WidenedTactic kFloatTensorsAvx512{"matrix_multiply_bf16_widened_f32_gemm_avx512", 1, kAnyAvx512};
constexpr WidenedTactic kFloatTensorsAvx2{"matrix_multiply_bf16_widened_f32_gemm_avx2", 1, kAnyAvx2};
constexpr PlainTactic kPlain{"matrix_multiply_any_plain_cpu", 1, multiplyPlain, multiplyPlainWorkspaceBytes};

} // namespace

extern constinit TacticList const cpuTactics =
    kTactics<kFewRowsAvx512, kFewRowsAvx2, kOfHalfFewRowsAvx512, kOfHalfFewRowsAvx2, kOfBf16FewRowsAvx512,
             kOfBf16FewRowsAvx2, kHalfFewRowsAvx512, kHalfFewRowsAvx2, kBf16FewRowsAvx512, kBf16FewRowsAvx2, kAvx512,
             kAvx2, kOfHalfAvx512, kOfHalfAvx2, kOfBf16Avx512, kOfBf16Avx2, kBf16Amx, kBf16Avx512, kBf16Avx2,
             kTensorsFewRowsAvx512, kTensorsFewRowsAvx2, kTensorsAmx, kTensorsAvx512, kTensorsAvx2, kFloatTensorsAvx512,
             kFloatTensorsAvx2, kInt8Avx512Vnni, kInt8AvxVnni, kInt8Avx512, kInt8Avx2, kPlain>;

} // namespace tw::ops::matrix_multiply
