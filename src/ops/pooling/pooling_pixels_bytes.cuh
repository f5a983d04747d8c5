// SPDX-License-Identifier: Apache-2.0
// What a thread computes with in windows of i8, as pooling_pixels.cuh does of floats: 16 channels.
#pragma once

#include "kernels/cuda/common/prelude.cuh"

namespace tw::ops::pooling {

// Largest numbers in halves of words whose upper bytes they are: the odd bytes of a word as they lie, and the even ones.
struct LargestBytes
{
    static constexpr u32 UPPER = 0xFF00FF00u;
    u32 odd[4], even[4];
    static TW_INLINE Pack<u32, 4> nothing()
    {
        constexpr u32 FOUR = 0x80808080u;
        return {{FOUR, FOUR, FOUR, FOUR}};
    }
    TW_INLINE void set(Pack<u32, 4> const& x)
    {
        for (int i = 0; i < 4; ++i) {
            odd[i] = x.v[i] & UPPER;
            even[i] = x.v[i] << 8 & UPPER;
        }
    }
    TW_INLINE void add(Pack<u32, 4> const& x)
    {
        LargestBytes other;
        other.set(x);
        add(other);
    }
    TW_INLINE void add(LargestBytes const& x)
    {
        for (int i = 0; i < 4; ++i) {
            odd[i] = __vmaxs2(odd[i], x.odd[i]);
            even[i] = __vmaxs2(even[i], x.even[i]);
        }
    }
    TW_INLINE Pack<u32, 4> result(float) const
    {
        Pack<u32, 4> y;
        for (int i = 0; i < 4; ++i)
            y.v[i] = odd[i] | even[i] >> 8;
        return y;
    }
};
// Exact sums; one FP32 division, half to even.
struct SumOfBytes
{
    i32 v[16];
    static TW_INLINE Pack<u32, 4> nothing() { return {}; }
    TW_INLINE void set(Pack<u32, 4> const& x)
    {
        for (int i = 0; i < 16; ++i)
            v[i] = 0;
        add(x);
    }
    TW_INLINE void add(Pack<u32, 4> const& x)
    {
        for (int i = 0; i < 16; ++i)
            v[i] = __dp4a(i32(x.v[i / 4]), 1 << (i % 4 * 8), v[i]);
    }
    TW_INLINE void add(SumOfBytes const& x)
    {
        for (int i = 0; i < 16; ++i)
            v[i] += x.v[i];
    }
    TW_INLINE Pack<u32, 4> result(float count) const
    {
        Pack<u32, 4> y = {};
        for (int i = 0; i < 16; ++i) { // 0: padding alone
            i32 const average = count > 0 ? __float2int_rn(__fdiv_rn(float(v[i]), count)) : 0;
            y.v[i / 4] |= (u32(average) & 0xFFu) << (i % 4 * 8);
        }
        return y;
    }
};

} // namespace tw::ops::pooling
