// SPDX-License-Identifier: Apache-2.0
// The kernels of token_weights.h, for the ISA files alone, which define TW_ISA (the namespace) and TW_FLOATS (in a vector).
#include "kernels/cpu/float_vectors.h"
#include "kernels/cpu/token_weights.h"

namespace tw::TW_ISA {

namespace {

namespace tokens {

using U [[gnu::vector_size(TW_FLOATS * 4)]] = uint32_t;
using W [[gnu::vector_size(TW_FLOATS * 4)]] = int64_t; // two lanes of 32 bits each, of which the even one is the lower
using H [[gnu::vector_size(TW_FLOATS * 2)]] = uint16_t;

constexpr float kLargest = 3.402823466e+38F;
float const kNever = -__builtin_inff();

inline V scoreOf(V v)
{
    V const capped = v < kLargest ? v : V{} + kLargest;
    return v >= -kLargest ? capped : V{} + kNever;
}
inline V fromHalf(H v)
{
#if TW_FLOATS == 16
    return V(_mm512_maskz_cvtph_ps(0xffff, __m256i(v)));
#else
    return V(_mm256_cvtph_ps(__m128i(v)));
#endif
}
inline W productOfEven(U a, U b)
{
#if TW_FLOATS == 16
    return W(_mm512_maskz_mul_epu32(0xff, __m512i(a), __m512i(b)));
#else
    return W(_mm256_mul_epu32(__m256i(a), __m256i(b)));
#endif
}
inline U highProduct(U a, U b)
{
    using Unsigned [[gnu::vector_size(TW_FLOATS * 4)]] = uint64_t;
    Unsigned const even = Unsigned(productOfEven(a, b));
    Unsigned const odd = Unsigned(productOfEven(U(Unsigned(a) >> 32), U(Unsigned(b) >> 32)));
    return U(even >> 32 | (odd & 0xffffffff00000000ULL));
}
inline U highProduct(U a, uint32_t b)
{
    return highProduct(a, U{} + b);
}

// The last elements of a run, and what counts for nothing.
inline V rest(float const* y, int64_t n)
{
    V v = V{} + kNever;
    __builtin_memcpy(&v, y, size_t(n) * sizeof(float));
    return v;
}

void divide(float const* x, int64_t n, float t, float* y)
{
    int64_t i = 0;
    for (; i + kFloats <= n; i += kFloats)
        store(y + i, scoreOf(scoreOf(load(x + i)) / t));
    if (i < n) {
        V const v = scoreOf(scoreOf(rest(x + i, n - i)) / t);
        __builtin_memcpy(y + i, &v, size_t(n - i) * sizeof(float));
    }
}

void scoresOfHalves(uint16_t const* x, int64_t n, float* y)
{
    H h;
    int64_t i = 0;
    for (; i + kFloats <= n; i += kFloats) {
        __builtin_memcpy(&h, x + i, sizeof h);
        store(y + i, scoreOf(fromHalf(h)));
    }
    if (i < n) {
        h = H{};
        __builtin_memcpy(&h, x + i, size_t(n - i) * sizeof(uint16_t));
        V const v = scoreOf(fromHalf(h));
        __builtin_memcpy(y + i, &v, size_t(n - i) * sizeof(float));
    }
}

float most(float const* y, int64_t n)
{
    V best = V{} + kNever;
    int64_t i = 0;
    for (; i + kFloats <= n; i += kFloats) {
        V const v = load(y + i);
        best = v > best ? v : best;
    }
    V const v = rest(y + i, n - i);
    best = v > best ? v : best;
    float m = kNever;
    for (int64_t k = 0; k < kFloats; ++k)
        m = best[k] > m ? best[k] : m;
    return m;
}

// Two sums of lanes.
inline W weights(V y, float most, float least, int64_t leastWeight)
{
    V const below = most - y;
    I const counts = (y >= least) & (below < 32);
    V const known = counts ? below : V{};
    U const t = highProduct(U(__builtin_convertvector(known * float(1 << 26), I)), 3098164009U);
    U const n = t >> 25, f = t << 7;
    U h = highProduct(f, 4073454U);
    h = highProduct(f, 39582418U - h);
    h = highProduct(f, 237543469U - h);
    h = highProduct(f, 1031582456U - h);
    h = highProduct(f, 2977031600U - h);
    constexpr int64_t kOne = int64_t(1) << 32;
    auto const half = [&](W rest, W shift, W isCounted) {
        W const w = ((kOne - rest) << 8) >> shift;
        return w & (isCounted != 0) & (w >= leastWeight);
    };
    constexpr int64_t kLower = kOne - 1;
    return half(W(h) & kLower, W(n) & kLower, W(counts) & kLower) +
           half((W(h) >> 32) & kLower, (W(n) >> 32) & kLower, (W(counts) >> 32) & kLower);
}

uint64_t sum(float const* y, int64_t n, float most, float least, uint64_t leastWeight)
{
    W all{};
    int64_t i = 0;
    for (; i + kFloats <= n; i += kFloats)
        all += weights(load(y + i), most, least, int64_t(leastWeight));
    all += weights(rest(y + i, n - i), most, least, int64_t(leastWeight));
    int64_t total = 0;
    for (int64_t k = 0; k < kFloats / 2; ++k)
        total += all[k];
    return uint64_t(total);
}

} // namespace tokens

} // namespace

extern kernels::TokenKernels const kTokens = {tokens::divide, tokens::scoresOfHalves, tokens::most, tokens::sum};

} // namespace tw::TW_ISA
