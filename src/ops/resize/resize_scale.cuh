// SPDX-License-Identifier: Apache-2.0
// Where the elements of an axis stand in x: by one multiplication and one division.
//   bool kIsNearest, kExcludesOutside
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/resize/resize_params.h"

namespace tw::ops::resize {

// Two elements and the second's weight; equal: only one takes part.
struct Taps
{
    int first, second;
    float weight;
};
TW_INLINE u32 quotient(u32 n, Div const& d)
{
    return (__umulhi(n, d.m) + n) >> d.s;
}
TW_INLINE u64 quotient(u64 n, Div const& d)
{
    return n / d.d;
}
template <class N>
TW_INLINE Taps tapsOf(Scale const& s, int o)
{
    N const n = N(o) * N(s.times) + N(s.plus), q = quotient(n, s.by);
    int const base = int(q) - 1, last = int(s.in) - 1;
    Taps t;
    t.first = base < 0 ? 0 : base > last ? last : base;
    t.second = t.first;
    t.weight = 0;
    if constexpr (!kIsNearest) {
        N const rest = n - q * N(s.by.d);
        t.weight = float(rest) * s.inverse;
        t.second = base + 1 > last ? last : base + 1;
        // Beyond the ends an element counts as absent: the other one stands alone.
        if (kExcludesOutside && base < 0)
            t.first = t.second;
        if (rest == 0)
            t.second = t.first;
    }
    return t;
}

} // namespace tw::ops::resize
