// SPDX-License-Identifier: Apache-2.0
// A thread walks down a strip of y with 16 bytes of channels.
//   type T: f16, f32; int COLUMNS of y, of a strip, SHIFT: how far the first begins before y, GROUPS of columns
//   int SEEN_W: columns of x, AHEAD: rows of x that are on their way, VECTORS of a pixel
//   int PIXEL_X, PIXEL_Y: bytes of a pixel where tensors are whole; THREADS
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/resize/resize_params.h"
#include "ops/resize/resize_sizes.cuh"

namespace tw::ops::resize {

typedef Pack<u32, 4> Unit;
constexpr int V = 16 / sizeof(T);
TW_INLINE float valueOf(Unit const& u, int i)
{
    if constexpr (V == 4)
        return __uint_as_float(u.v[i]);
    Narrow one;
    one.bits = (unsigned short)(i % 2 ? u.v[i / 2] >> 16 : u.v[i / 2]);
    return halfToFloat(one);
}
// A constant that the compiler knows after its first passes only: sooner, it gives other machine code.
TW_INLINE float late(float v)
{
    return v;
}
TW_INLINE Unit unitOf(float const (&v)[V])
{
    Unit u;
    if constexpr (V == 4) {
#pragma unroll
        for (int i = 0; i < V; ++i)
            u.v[i] = __float_as_uint(v[i]);
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            u32 pair;
            float const low = v[2 * i], high = v[2 * i + 1];
            asm("cvt.rn." TW_NARROW_PTX "x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
            u.v[i] = pair;
        }
    }
    return u;
}
// Strips that lie a whole number of columns of x apart are mixed alike; others are one column wide.
constexpr bool REPEATS = COLUMNS * TIMES_W % BY_W == 0;
struct Strip
{
    int at[SEEN_W];
    float weight;
}; // at: bytes from a row's start
TW_INLINE constexpr u32 placeOf(int e)
{
    return (u32(e) - SHIFT) * TIMES_W + PLUS_W;
}
TW_INLINE constexpr int firstOf(int e)
{
    return int(placeOf(e) / BY_W) - int(placeOf(0) / BY_W);
}
TW_INLINE constexpr bool isWholeOf(int e)
{
    return placeOf(e) % BY_W == 0;
}
TW_INLINE float weightOf(int e)
{
    return float(placeOf(e) % BY_W) * late(INVERSE_W);
}

// Of the columns of a strip: a row of x mixed along it, or (nearest) as it is.
template <bool NEAREST>
struct AcrossOf
{
    float v[COLUMNS][V];
};
template <>
struct AcrossOf<true>
{
    Unit v[COLUMNS];
};
typedef AcrossOf<kIsNearest> Across;
TW_INLINE void across(Strip const& s, Unit const (&raw)[SEEN_W], AcrossOf<false>& m)
{
#pragma unroll
    for (int e = 0; e < COLUMNS; ++e) {
        int const first = firstOf(e), second = REPEATS && isWholeOf(e) ? first : first + 1;
        float const weight = REPEATS ? isWholeOf(e) ? 0.5f : weightOf(e) : s.weight;
#pragma unroll
        for (int i = 0; i < V; ++i)
            m.v[e][i] = mixed(valueOf(raw[first], i), valueOf(raw[second], i), weight, REPEATS);
    }
}
TW_INLINE Unit between(AcrossOf<false> const& a, AcrossOf<false> const& b, int e, float weight)
{
    float v[V];
#pragma unroll
    for (int i = 0; i < V; ++i)
        v[i] = mixed(a.v[e][i], b.v[e][i], weight, IS_PERIODIC);
    return unitOf(v);
}
TW_INLINE void across(Strip const&, Unit const (&raw)[SEEN_W], AcrossOf<true>& m)
{
#pragma unroll
    for (int e = 0; e < COLUMNS; ++e)
        m.v[e] = raw[firstOf(e)];
}
TW_INLINE Unit between(AcrossOf<true> const&, AcrossOf<true> const& b, int e, float)
{
    return b.v[e];
}
// DENSE: x and y are whole tensors.
template <bool DENSE>
TW_INLINE void strips(StripParams const& p)
{
    int const pixelX = DENSE ? PIXEL_X : int(p.pixelX), pixelY = DENSE ? PIXEL_Y : int(p.pixelY);
    u32 const band = blockIdx.x % BANDS, strip = blockIdx.x / BANDS * THREADS + threadIdx.x;
    if (strip >= p.strips)
        return;
    u32 const place = strip / VECTORS, vector = strip - place * VECTORS, image = place / GROUPS,
              group = place - image * GROUPS;
    int const r0 = int(band) * ROWS, rows = min(ROWS, TALL - r0), column = int(group) * COLUMNS - SHIFT;
    u32 const n0 = u32(r0) * TIMES + PLUS;
    int const base = min(int(n0 / BY) - 1, TALL_X - 1);
    Strip s;
    s.weight = 0.5f; // an element of weight zero takes no part: an infinity times zero were NaN
    u32 const m = REPEATS ? placeOf(0) : u32(column) * TIMES_W + PLUS_W;
    int const first = int(m / BY_W) - 1 + (REPEATS ? int(group * (COLUMNS * TIMES_W / BY_W)) : 0);
#pragma unroll
    for (int d = 0; d < SEEN_W; ++d)
        s.at[d] = max(min(first + d, WIDE_X - 1), 0) * pixelX;
    if constexpr (!REPEATS && !kIsNearest) {
        if (m % BY_W == 0)
            s.at[SEEN_W - 1] = s.at[0];
        else
            s.weight = float(m % BY_W) * late(INVERSE_W);
    }
    u8 const* const x = static_cast<u8 const*>(p.x) + i64(image) * (i64(TALL_X) * WIDE_X * pixelX) + vector * 16;
    u8* y = static_cast<u8*>(p.y) + ((i64(image) * TALL + r0) * WIDE + column) * pixelY + vector * 16;
    waitForPrevious();
    releaseDependents();
    Unit raw[AHEAD + 1][SEEN_W];
    auto fetch = [&](int i) {
        u8 const* const row = x + i64(max(min(base + i, TALL_X - 1), 0)) * (WIDE_X * pixelX);
#pragma unroll
        for (int d = 0; d < SEEN_W; ++d)
            raw[i % (AHEAD + 1)][d] = *reinterpret_cast<Unit const*>(row + s.at[d]);
    };
#pragma unroll
    for (int i = 0; i < AHEAD && i < SEEN; ++i)
        fetch(i);
    Across v[2]; // of a row of x and of the one before, alternately
    int r = 0;
    // How far row r of y lies after a row of x: the one before row i, or (nearest) row i itself.
    u32 rest = n0 % BY + (kIsNearest ? 0 : BY);
#pragma unroll
    for (int i = 0; i < SEEN; ++i) {
        Across &a = v[(i + 1) % 2], &b = v[i % 2];
        if (i + AHEAD < SEEN)
            fetch(i + AHEAD);
        across(s, raw[i % (AHEAD + 1)], b);
        auto emit = [&](int r, u32 rest) {
            if (!kIsNearest && rest == BY)
                a = b;
            float const weight = !kIsNearest && rest == BY ? 0.5f : float(rest) * late(INVERSE);
#pragma unroll
            for (int e = 0; e < COLUMNS; ++e) {
                Unit const u = between(a, b, e, weight);
                if (GROUPS * COLUMNS == WIDE || u32(column + e) < u32(WIDE))
                    *reinterpret_cast<Unit*>(y + (r * WIDE + e) * pixelY) = u;
            }
        };
        if constexpr (IS_PERIODIC) {
#pragma unroll
            for (int k = 0; k < ROWS; ++k) {
                u32 const m = u32(k) * TIMES + PLUS % BY + (kIsNearest ? 0 : BY), behind = m - u32(i) * BY;
                if (m >= u32(i) * BY && behind <= LAST && (kIsNearest || i == 0 || behind > 0) &&
                    (TALL % ROWS == 0 || k < rows))
                    emit(k, behind);
            }
        } else {
#pragma unroll 1
            for (; rest <= LAST && r < rows; ++r, rest += TIMES, y += WIDE * pixelY)
                emit(0, rest);
            rest -= BY;
        }
    }
}
TW_KERNEL_OF(__launch_bounds__(THREADS) resize_strips, StripParams, strips<true>)
TW_KERNEL_OF(__launch_bounds__(THREADS) resize_strips_of_parts, StripParams, strips<false>)

} // namespace tw::ops::resize
