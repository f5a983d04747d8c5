// SPDX-License-Identifier: Apache-2.0
// Rows that are not in the caches yet, as few_rows.cuh reads and writes them.
//   int D, ROTARY (elements that are turned; 0: none); bool INTERLEAVED, COSINES_BY_PAIR, SINES_BY_PAIR
#pragma once

#include "kernels/cuda/attention/few_rows_params.h"
#include "kernels/cuda/attention/masks.cuh"

namespace tw::cuda::attention_few_rows {

TW_INLINE Unit unitAt(f16 const* at)
{
    return *reinterpret_cast<Unit const*>(at);
}
// The factors of 8 neighbours from e on.
template <bool BY_PAIR>
TW_INLINE Unit factorsAt(f16 const* row, int e)
{
    if constexpr (!BY_PAIR) {
        return unitAt(row + e);
    } else if constexpr (INTERLEAVED) { // each one twice
        uint2 const four = *reinterpret_cast<uint2 const*>(row + e / 2);
        return {{__byte_perm(four.x, 0, 0x1010), __byte_perm(four.x, 0, 0x3232), __byte_perm(four.y, 0, 0x1010),
                 __byte_perm(four.y, 0, 0x3232)}};
    } else {
        return unitAt(row + (e < ROTARY / 2 ? e : e - ROTARY / 2));
    }
}
// 8 neighbours of a row from e on, turned; cosines and sines: those of the row.
TW_INLINE Unit turnedAt(f16 const* row, int e, f16 const* cosines, f16 const* sines)
{
    Unit const own = unitAt(row + e);
    if constexpr (ROTARY < D)
        if (e >= ROTARY)
            return own;
    Unit const c = factorsAt<COSINES_BY_PAIR>(cosines, e), s = factorsAt<SINES_BY_PAIR>(sines, e);
    bool const isFirst = e < ROTARY / 2;
    Unit const other = INTERLEAVED ? own : unitAt(isFirst ? row + e + ROTARY / 2 : row + e - ROTARY / 2);
    Unit y;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        float const low = lowHalf(own.v[i]), high = highHalf(own.v[i]);
        float const lowOther = INTERLEAVED ? -high : isFirst ? -lowHalf(other.v[i]) : lowHalf(other.v[i]);
        float const highOther = INTERLEAVED ? low : isFirst ? -highHalf(other.v[i]) : highHalf(other.v[i]);
        y.v[i] = packHalves(low * lowHalf(c.v[i]) + lowOther * lowHalf(s.v[i]),
                            high * highHalf(c.v[i]) + highOther * highHalf(s.v[i]));
    }
    return y;
}

} // namespace tw::cuda::attention_few_rows
