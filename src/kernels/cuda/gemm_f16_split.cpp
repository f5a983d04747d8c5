// SPDX-License-Identifier: Apache-2.0
// FP32 operands as two TF32 numbers for each of theirs.
#include "kernels/cuda/gemm_f16.h"
#include "kernels/cuda/generate.h"

namespace tw::cuda::gemm_f16 {

namespace {

constexpr char const* kSplit = R"(
struct SplitArgs { float const* a; float* to; i64 lda; i32 rows, k, padded; };
TW_KERNEL split(const __grid_constant__ SplitArgs s)
{
    releaseDependents();
    waitForPrevious();
    int const at = blockIdx.x * 256 + threadIdx.x, row = at / (s.padded / 4), k0 = at % (s.padded / 4) * 4;
    if (row >= s.rows) return;
    float4 v = {};
    if (k0 < s.k) v = *reinterpret_cast<float4 const*>(s.a + row * s.lda + k0);
    float const x[4] = {v.x, v.y, v.z, v.w};
    Unit high, low;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(high.v[i]) : "f"(x[i]));
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(low.v[i]) : "f"(x[i] - __uint_as_float(high.v[i])));
    }
    float* const to = s.to + i64(row) * s.padded * 2 + k0;
    *reinterpret_cast<Unit*>(to) = high;
    *reinterpret_cast<Unit*>(to + s.padded) = low;
}
)";

} // namespace

int64_t splitRow(int64_t k)
{
    return ceilDiv(k, kStepBytes / 4) * (kStepBytes / 4) * 2;
}

int64_t splitBlocks(SplitArgs const& a)
{
    return ceilDiv(int64_t(a.rows) * a.padded, 256 * 4);
}

std::string splitSource()
{
    return std::string(kSplit) + "static_assert(sizeof(SplitArgs) == " + std::to_string(sizeof(SplitArgs)) +
           ", \"layout of SplitArgs\");\n";
}

} // namespace tw::cuda::gemm_f16
