// SPDX-License-Identifier: Apache-2.0
// FP32 numbers of a fragment rounded to TF32 and, where TF32X3, what that left; products of them, one or three.
//   bool TF32X3
#pragma once

#include "kernels/cuda/common/fragments.cuh"
#include "kernels/cuda/common/tf32.cuh"

namespace tw::cuda {

template <int N>
struct Factors
{
    u32 high[N], low[N];
    TW_INLINE void set(int i, float v)
    {
        high[i] = toTf32(v);
        if constexpr (TF32X3)
            low[i] = toTf32(v - __uint_as_float(high[i]));
    }
};
// d [16, 8] += a [16, 8] b [8, 8]
TW_INLINE void multiply(float (&d)[4], u32 const (&a)[4], u32 b0, u32 b1)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
TW_INLINE void multiply(float (&d)[4], Factors<4> const& a, Factors<2> const& b)
{
    if constexpr (TF32X3) {
        multiply(d, a.low, b.high[0], b.high[1]);
        multiply(d, a.high, b.low[0], b.low[1]);
    }
    multiply(d, a.high, b.high[0], b.high[1]);
}
// Four blocks of 8 rows and 16 bytes: lane holds number lane % 4 of row lane / 4 of each.
TW_INLINE void loadBlocks(float (&v)[4], u32 at)
{
    u32 r[4];
    loadMatrix4(r, at);
#pragma unroll
    for (int i = 0; i < 4; ++i)
        v[i] = __uint_as_float(r[i]);
}

} // namespace tw::cuda
