// SPDX-License-Identifier: Apache-2.0
#include "families/gemm/gemv_tactic.h"
#include "families/gemm/int8_gemm_tactic.h"
#include "families/gemm/plain_gemm.h"
#include "ops/matrix_multiply/op.h"

namespace tw::ops::matrix_multiply {

namespace {

using kernels::jit::Dots;
using kernels::jit::Factors;
using kernels::jit::GemvWeights;
using kernels::jit::Isa;
constexpr GemvTactic kFewRowsAvx512{"matrix_multiply_f32_gemv_avx512", 1, Isa::kAvx512};
constexpr GemvTactic kFewRowsAvx2{"matrix_multiply_f32_gemv_avx2", 1, Isa::kAvx2};
constexpr GemvTactic kBf16FewRowsAvx512{"matrix_multiply_bf16_gemv_avx512", 1, Isa::kAvx512, GemvWeights::kBfloat16};
constexpr GemvTactic kBf16FewRowsAvx2{"matrix_multiply_bf16_gemv_avx2", 1, Isa::kAvx2, GemvWeights::kBfloat16};
constexpr GemvTactic kHalfFewRowsAvx512{"matrix_multiply_f32f16_gemv_avx512", 1, Isa::kAvx512, GemvWeights::kHalf};
constexpr GemvTactic kHalfFewRowsAvx2{"matrix_multiply_f32f16_gemv_avx2", 1, Isa::kAvx2, GemvWeights::kHalf};
constexpr GemmTactic kAvx512{"matrix_multiply_f32_gemm_avx512", 1, Isa::kAvx512};
constexpr GemmTactic kAvx2{"matrix_multiply_f32_gemm_avx2", 1, Isa::kAvx2};
constexpr GemmTactic kBf16Amx{"matrix_multiply_bf16_gemm_amx", 1, Isa::kAvx512, Factors::kBf16Tiles};
constexpr GemmTactic kBf16Avx512{"matrix_multiply_bf16_gemm_avx512", 1, Isa::kAvx512, Factors::kBf16Dots};
constexpr GemmTactic kBf16Avx2{"matrix_multiply_bf16_gemm_avx2", 1, Isa::kAvx2, Factors::kBf16Shifts};
constexpr Int8GemmTactic kInt8Avx512Vnni{"matrix_multiply_i8_gemm_vnni_avx512", 1, Isa::kAvx512, Dots::kVnni};
constexpr Int8GemmTactic kInt8AvxVnni{"matrix_multiply_i8_gemm_vnni_avx2", 1, Isa::kAvx2, Dots::kVnni};
constexpr Int8GemmTactic kInt8Avx512{"matrix_multiply_i8_gemm_avx512", 1, Isa::kAvx512, Dots::kWords};
constexpr Int8GemmTactic kInt8Avx2{"matrix_multiply_i8_gemm_avx2", 1, Isa::kAvx2, Dots::kWords};
constexpr PlainTactic kPlain{"matrix_multiply_any_plain_cpu", 1, multiplyPlain, multiplyPlainWorkspaceBytes};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kFewRowsAvx512,
                                              &kFewRowsAvx2,
                                              &kHalfFewRowsAvx512,
                                              &kHalfFewRowsAvx2,
                                              &kBf16FewRowsAvx512,
                                              &kBf16FewRowsAvx2,
                                              &kAvx512,
                                              &kAvx2,
                                              &kBf16Amx,
                                              &kBf16Avx512,
                                              &kBf16Avx2,
                                              &kInt8Avx512Vnni,
                                              &kInt8AvxVnni,
                                              &kInt8Avx512,
                                              &kInt8Avx2,
                                              &kPlain};
    return kList;
}

} // namespace tw::ops::matrix_multiply
