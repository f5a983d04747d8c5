// SPDX-License-Identifier: Apache-2.0
// The end of sums of i8 for four columns of y at once. After integerEndSource().
//   bool ALIGNED   rows of y and of the residual come in steps of 4 columns, each aligned
#pragma once

#include "kernels/cuda/common/integer_end.cuh"

namespace tw::cuda {

template <class T>
struct alignas(sizeof(T) * 4) FourOf
{
    T v[4];
};

// What is rounded to y, of the sums of four columns or as many as there are (`left`).
TW_INLINE void endFour(float (&v)[4], i32 const (&sum)[4], float const (&scale)[4], float const (&bias)[4],
                       EndNumbers const& numbers, EndResidual const* residual, int left)
{
    FourOf<EndResidual> r = {};
    if constexpr (END_RESIDUAL && ALIGNED) {
        if (left > 0)
            r = *reinterpret_cast<FourOf<EndResidual> const*>(residual);
    } else if constexpr (END_RESIDUAL) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            if (i < left)
                r.v[i] = residual[i];
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
        v[i] = endOf(sum[i], scale[i], bias[i], r.v[i], numbers);
}
// To integers of 32 bits, half to even, where NaN gives 0 and the rest stays in order; then an instruction clamps two of
// them to bytes, in front of what is packed already.
TW_INLINE u32 packFour(float const (&v)[4], i8 const* table)
{
    if constexpr (END_TABLE)
        return packBytes(endByte(v[0], table), endByte(v[1], table), endByte(v[2], table), endByte(v[3], table));
    u32 bytes = 0;
#pragma unroll
    for (int i = 2; i >= 0; i -= 2) {
        i32 const low = __float2int_rn(v[i]), high = __float2int_rn(v[i + 1]);
        asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(high), "r"(low), "r"(bytes));
    }
    return bytes;
}
TW_INLINE void putFour(EndElement* to, float const (&v)[4], i8 const* table, int left)
{
    if constexpr (!ALIGNED) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            if (i < left)
                endStore(to + i, v[i], table);
    } else if (left > 0) {
        if constexpr (sizeof(EndElement) == 1) {
            *reinterpret_cast<u32*>(to) = packFour(v, table);
        } else {
            FourOf<EndElement> out;
#pragma unroll
            for (int i = 0; i < 4; ++i)
                endStore(&out.v[i], v[i], table);
            *reinterpret_cast<FourOf<EndElement>*>(to) = out;
        }
    }
}

} // namespace tw::cuda
