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
TW_INLINE u32 packFour(float const (&v)[4], i8 const* table)
{
    return packBytes(endByte(v[0], table), endByte(v[1], table), endByte(v[2], table), endByte(v[3], table));
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
