// SPDX-License-Identifier: Apache-2.0
#include "families/gemm/gemv_tactic.h"
#include "families/gemm/plain_gemm.h"
#include "ops/matrix_multiply/op.h"

namespace tw::ops::matrix_multiply {

namespace {

using kernels::jit::Isa;
constexpr GemvTactic kFewRowsAvx512{"matrix_multiply_f32_gemv_avx512", 1, Isa::kAvx512};
constexpr GemvTactic kFewRowsAvx2{"matrix_multiply_f32_gemv_avx2", 1, Isa::kAvx2};
constexpr GemmTactic kAvx512{"matrix_multiply_f32_gemm_avx512", 1, Isa::kAvx512};
constexpr GemmTactic kAvx2{"matrix_multiply_f32_gemm_avx2", 1, Isa::kAvx2};
constexpr PlainTactic kPlain{"matrix_multiply_any_plain_cpu", 1, multiplyPlain, multiplyPlainWorkspaceBytes};

} // namespace

std::span<Tactic const* const> cpuTactics()
{
    static constexpr Tactic const* kList[] = {&kFewRowsAvx512, &kFewRowsAvx2, &kAvx512, &kAvx2, &kPlain};
    return kList;
}

} // namespace tw::ops::matrix_multiply
