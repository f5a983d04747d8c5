// SPDX-License-Identifier: Apache-2.0
// The function of kernels.h, written once with the compiler's vector types. For the files that define TW_ISA (the namespace)
// and TW_BYTES (of a vector).
#include <immintrin.h>

#include "ops/grid_sample/kernels.h"

namespace tw::TW_ISA {

namespace {

constexpr int64_t kLanes = TW_BYTES / 4;
constexpr int kMostTaps = 4;

using Floats [[gnu::vector_size(TW_BYTES)]] = float;
using Ints [[gnu::vector_size(TW_BYTES)]] = int32_t;

#if TW_BYTES == 64
inline Floats roundedDown(Floats v)
{
    return (Floats)_mm512_roundscale_ps((__m512)v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
inline Floats roundedToEven(Floats v)
{
    return (Floats)_mm512_roundscale_ps((__m512)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
inline Floats elementsAt(float const* x, Ints at, Ints isInside)
{
    __mmask16 const mask = _mm512_movepi32_mask((__m512i)isInside);
    return (Floats)_mm512_mask_i32gather_ps(_mm512_setzero_ps(), mask, (__m512i)at, x, 4);
}
inline Floats even(Floats a, Floats b)
{
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
}
inline Floats odd(Floats a, Floats b)
{
    return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
}
#else
inline Floats roundedDown(Floats v)
{
    return (Floats)_mm256_round_ps((__m256)v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
inline Floats roundedToEven(Floats v)
{
    return (Floats)_mm256_round_ps((__m256)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
inline Floats elementsAt(float const* x, Ints at, Ints isInside)
{
    return (Floats)_mm256_mask_i32gather_ps(_mm256_setzero_ps(), x, (__m256i)at, (__m256)isInside, 4);
}
inline Floats even(Floats a, Floats b)
{
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
}
inline Floats odd(Floats a, Floats b)
{
    return __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
}
#endif

// Along one axis: two pixels (of nearest the first alone), which of them are there, and their weights.
struct Along
{
    Ints at[2], isInside[2];
    Floats weight[2];
};

// Each step is rounded as the reference's, so that the same pixels are found.
inline Along find(ops::grid_sample::Sampling const& s, Floats g, int64_t size)
{
    Floats const zero{}, last = zero + float(size - 1), moved = g + 1.0F;
    Floats place = s.alignCorners ? moved / 2.0F * last : (moved * float(size) - 1.0F) / 2.0F;
    if (s.clamps)
        place = place > zero ? (place < last ? place : last) : zero; // of NaN, too
    Floats const first = s.isNearest ? roundedToEven(place) : roundedDown(place);
    Along a;
    for (int k = 0; k < 2; ++k) {
        Floats const pixel = first + float(k), distance = place - pixel;
        a.isInside[k] = (pixel >= zero) & (pixel <= last);
        a.at[k] = __builtin_convertvector(a.isInside[k] ? pixel : zero, Ints);
        a.weight[k] = s.isNearest ? zero + 1.0F : 1.0F - (distance < zero ? -distance : distance);
    }
    return a;
}

inline Floats loadFloats(float const* x)
{
    Floats v;
    __builtin_memcpy(&v, x, sizeof v);
    return v;
}

inline void storeFloats(float* y, Floats v, int64_t count)
{
    __builtin_memcpy(y, &v, size_t(count) * 4);
}

} // namespace

void samplePoints(ops::grid_sample::Sampling const& s, float const* x, float const* grid, int64_t first, int64_t last,
                  float* y)
{
    int const along = s.isNearest ? 1 : 2, taps = along * along;
    int64_t const plane = s.height * s.width;
    for (int64_t i = first; i < last; i += kLanes) {
        int64_t const count = last - i < kLanes ? last - i : kLanes;
        float points[2 * kLanes] = {};
        __builtin_memcpy(points, grid + 2 * i, size_t(count) * 8);
        Floats const a = loadFloats(points), b = loadFloats(points + kLanes);
        Along const across = find(s, even(a, b), s.width), down = find(s, odd(a, b), s.height);
        Ints at[kMostTaps], isInside[kMostTaps];
        Floats weight[kMostTaps];
        for (int k = 0; k < taps; ++k) {
            int const r = k / along, c = k % along;
            isInside[k] = across.isInside[c] & down.isInside[r];
            at[k] = down.at[r] * int32_t(s.width) + across.at[c];
            weight[k] = isInside[k] ? down.weight[r] * across.weight[c] : Floats{};
        }
        for (int64_t channel = 0; channel < s.channels; ++channel) {
            float const* from = x + channel * plane;
            Floats sum{};
            for (int k = 0; k < taps; ++k)
                sum += weight[k] * elementsAt(from, at[k], isInside[k]);
            float* to = y + channel * s.points + i;
            if (count == kLanes)
                storeFloats(to, sum, kLanes);
            else
                storeFloats(to, sum, count);
        }
    }
}

} // namespace tw::TW_ISA
