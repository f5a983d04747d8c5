// SPDX-License-Identifier: Apache-2.0
// The kernels of kernels.h, written once for both instruction sets. For the ISA files alone, which define TW_ISA (the
// namespace) and TW_FLOATS (in a vector).
#include <immintrin.h>

#include "ops/topk/kernels.h"

namespace tw::TW_ISA {

namespace {

using ops::topk::Pass;

constexpr int64_t kWidth = TW_FLOATS;
struct Half
{
    uint16_t bits;
};

#if TW_FLOATS == 16
using Floats = __m512;
using Ints = __m512i;
using Mask = __mmask16;
constexpr Mask kAll = 0xffff; // g++ 12 warns of the intrinsics without a mask
inline Floats load(float const* x)
{
    return _mm512_loadu_ps(x);
}
inline Floats load(Half const* x)
{
    return _mm512_maskz_cvtph_ps(kAll, _mm256_loadu_si256(reinterpret_cast<__m256i const*>(x)));
}
inline Floats load(int8_t const* x)
{
    return _mm512_maskz_cvtepi32_ps(
        kAll, _mm512_maskz_cvtepi8_epi32(kAll, _mm_loadu_si128(reinterpret_cast<__m128i const*>(x))));
}
inline void store(float* to, Floats v)
{
    _mm512_storeu_ps(to, v);
}
inline void store(int32_t* to, Ints v)
{
    _mm512_storeu_si512(to, v);
}
inline Floats spread(float v)
{
    return _mm512_set1_ps(v);
}
inline Ints spread(int32_t v)
{
    return _mm512_set1_epi32(v);
}
// Of two, the second when either is NaN.
inline Floats larger(Floats a, Floats b)
{
    return _mm512_maskz_max_ps(kAll, a, b);
}
inline Floats smaller(Floats a, Floats b)
{
    return _mm512_maskz_min_ps(kAll, a, b);
}
template <int kPredicate>
inline Mask compare(Floats a, Floats b)
{
    return _mm512_cmp_ps_mask(a, b, kPredicate);
}
inline unsigned bitsOf(Mask m)
{
    return m;
}
inline Mask both(Mask a, Mask b)
{
    return Mask(a & b);
}
inline bool any(Mask a, Mask b, Mask c, Mask d)
{
    return (a | b | c | d) != 0;
}
inline Floats choose(Mask m, Floats ifSet, Floats other)
{
    return _mm512_mask_blend_ps(m, other, ifSet);
}
inline Ints choose(Mask m, Ints ifSet, Ints other)
{
    return _mm512_mask_blend_epi32(m, other, ifSet);
}
#else
using Floats = __m256;
using Ints = __m256i;
using Mask = __m256;
inline Floats load(float const* x)
{
    return _mm256_loadu_ps(x);
}
inline Floats load(Half const* x)
{
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<__m128i const*>(x)));
}
inline Floats load(int8_t const* x)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<__m128i const*>(x))));
}
inline void store(float* to, Floats v)
{
    _mm256_storeu_ps(to, v);
}
inline void store(int32_t* to, Ints v)
{
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v);
}
inline Floats spread(float v)
{
    return _mm256_set1_ps(v);
}
inline Ints spread(int32_t v)
{
    return _mm256_set1_epi32(v);
}
// Of two, the second when either is NaN.
inline Floats larger(Floats a, Floats b)
{
    return _mm256_max_ps(a, b);
}
inline Floats smaller(Floats a, Floats b)
{
    return _mm256_min_ps(a, b);
}
template <int kPredicate>
inline Mask compare(Floats a, Floats b)
{
    return _mm256_cmp_ps(a, b, kPredicate);
}
inline unsigned bitsOf(Mask m)
{
    return unsigned(_mm256_movemask_ps(m));
}
inline Mask both(Mask a, Mask b)
{
    return _mm256_and_ps(a, b);
}
inline bool any(Mask a, Mask b, Mask c, Mask d)
{
    return _mm256_movemask_ps(_mm256_or_ps(_mm256_or_ps(a, b), _mm256_or_ps(c, d))) != 0;
}
inline Floats choose(Mask m, Floats ifSet, Floats other)
{
    return _mm256_blendv_ps(other, ifSet, m);
}
inline Ints choose(Mask m, Ints ifSet, Ints other)
{
    return _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(other), _mm256_castsi256_ps(ifSet), m));
}
#endif

// The last, partial vector: as if x went on with copies of its last element.
template <class T>
inline Floats loadPart(T const* x, int64_t count)
{
    T buffer[kWidth];
    for (int64_t i = 0; i < kWidth; ++i)
        buffer[i] = x[i < count ? i : count - 1];
    return load(buffer);
}

template <class T>
void extremes(void const* from, int64_t n, bool smallest, float* lane, int64_t lanes)
{
    auto const* x = static_cast<T const*>(from);
    for (int64_t l = 0; l < lanes; l += kWidth)
        store(lane + l, spread(smallest ? __builtin_inff() : -__builtin_inff()));
    for (int64_t i = 0; i + kWidth <= n; i += lanes) {
        int64_t const rest = n - i < lanes ? n - i : lanes;
        if (smallest)
            for (int64_t l = 0; l + kWidth <= rest; l += kWidth)
                store(lane + l, smaller(load(x + i + l), load(lane + l)));
        else
            for (int64_t l = 0; l + kWidth <= rest; l += kWidth)
                store(lane + l, larger(load(x + i + l), load(lane + l)));
    }
}

template <class T, bool kSmallest>
float thresholdOf(T const* x, int64_t n, int64_t k)
{
    auto const better = [](Floats v, Floats so) { return kSmallest ? smaller(v, so) : larger(v, so); };
    Floats lane[4];
    for (Floats& l : lane)
        l = spread(kSmallest ? __builtin_inff() : -__builtin_inff());
    int64_t i = 0;
    for (; i + 4 * kWidth <= n; i += 4 * kWidth)
        for (int v = 0; v < 4; ++v)
            lane[v] = better(load(x + i + v * kWidth), lane[v]);
    for (; i + kWidth <= n; i += kWidth)
        lane[0] = better(load(x + i), lane[0]);
    Floats const all = better(better(lane[0], lane[1]), better(lane[2], lane[3]));
    // The best number that k lanes are not worse than.
    float values[kWidth], best = kSmallest ? __builtin_inff() : -__builtin_inff();
    store(values, all);
    for (float v : values) {
        unsigned const lanes =
            bitsOf(kSmallest ? compare<_CMP_LE_OQ>(all, spread(v)) : compare<_CMP_GE_OQ>(all, spread(v)));
        bool const enough = __builtin_popcount(lanes) >= k;
        best = enough && (kSmallest ? v < best : v > best) ? v : best;
    }
    return best;
}

template <class T>
float thresholdOfFew(void const* x, int64_t n, bool smallest, int64_t k)
{
    auto const* from = static_cast<T const*>(x);
    return smallest ? thresholdOf<T, true>(from, n, k) : thresholdOf<T, false>(from, n, k);
}

template <class T, int kPredicate>
int64_t collectBy(T const* x, int64_t begin, int64_t n, float threshold, int32_t* to, int64_t room, int64_t* end)
{
    Floats const t = spread(threshold);
    int64_t count = 0, i = begin;
    auto take = [&](unsigned bits) {
        for (; bits != 0; bits &= bits - 1)
            to[count++] = int32_t(i + __builtin_ctz(bits));
    };
    while (i < n && count + kWidth <= room) {
        if (i + 4 * kWidth <= n) { // mostly none of many passes
            Mask const m0 = compare<kPredicate>(load(x + i), t), m1 = compare<kPredicate>(load(x + i + kWidth), t),
                       m2 = compare<kPredicate>(load(x + i + 2 * kWidth), t),
                       m3 = compare<kPredicate>(load(x + i + 3 * kWidth), t);
            if (!any(m0, m1, m2, m3)) {
                i += 4 * kWidth;
                continue;
            }
        }
        int64_t const left = n - i;
        unsigned bits = bitsOf(compare<kPredicate>(left >= kWidth ? load(x + i) : loadPart(x + i, left), t));
        if (left < kWidth)
            bits &= (1u << left) - 1;
        take(bits);
        i += left < kWidth ? left : kWidth;
    }
    *end = i;
    return count;
}

template <class T>
int64_t collect(void const* x, int64_t begin, int64_t n, Pass pass, float t, int32_t* to, int64_t room, int64_t* end)
{
    auto const* from = static_cast<T const*>(x);
    switch (pass) {
    case Pass::kNotBelow:
        return collectBy<T, _CMP_NLT_UQ>(from, begin, n, t, to, room, end);
    case Pass::kAbove:
        return collectBy<T, _CMP_NLE_UQ>(from, begin, n, t, to, room, end);
    case Pass::kNotAbove:
        return collectBy<T, _CMP_LE_OQ>(from, begin, n, t, to, room, end);
    case Pass::kBelow:
        return collectBy<T, _CMP_LT_OQ>(from, begin, n, t, to, room, end);
    }
    return 0;
}

// Of kVectors vectors of columns; `columns` when they are fewer than one vector has.
template <class T, bool kSmallest, int kVectors>
void bestOf(T const* x, int64_t n, int64_t step, int64_t columns, int32_t* index)
{
    auto at = [&](int64_t j, int v) {
        return columns >= kWidth ? load(x + j * step + v * kWidth) : loadPart(x + j * step, columns);
    };
    Floats best[kVectors];
    Ints where[kVectors];
    for (int v = 0; v < kVectors; ++v) {
        best[v] = at(0, v);
        where[v] = spread(int32_t(0));
    }
    for (int64_t j = 1; j < n; ++j)
        for (int v = 0; v < kVectors; ++v) {
            Floats const x1 = at(j, v);
            // Better, or the first NaN (the first number).
            Mask const better = kSmallest
                                    ? both(compare<_CMP_NGE_UQ>(x1, best[v]), compare<_CMP_ORD_Q>(x1, x1))
                                    : both(compare<_CMP_NLE_UQ>(x1, best[v]), compare<_CMP_ORD_Q>(best[v], best[v]));
            best[v] = choose(better, x1, best[v]);
            where[v] = choose(better, spread(int32_t(j)), where[v]);
        }
    for (int v = 0; v < kVectors; ++v) {
        if (columns >= kWidth) {
            store(index + v * kWidth, where[v]);
            continue;
        }
        int32_t buffer[kWidth];
        store(buffer, where[v]);
        for (int64_t c = 0; c < columns; ++c)
            index[c] = buffer[c];
    }
}

template <class T, bool kSmallest>
void bestOfAll(T const* x, int64_t n, int64_t step, int64_t columns, int32_t* index)
{
    int64_t i = 0;
    for (; i + 4 * kWidth <= columns; i += 4 * kWidth)
        bestOf<T, kSmallest, 4>(x + i, n, step, columns - i, index + i);
    for (; i < columns; i += kWidth)
        bestOf<T, kSmallest, 1>(x + i, n, step, columns - i, index + i);
}

template <class T>
void bestOfColumns(void const* from, int64_t n, int64_t step, int64_t columns, bool smallest, int32_t* index)
{
    auto const* x = static_cast<T const*>(from);
    smallest ? bestOfAll<T, true>(x, n, step, columns, index) : bestOfAll<T, false>(x, n, step, columns, index);
}

} // namespace

ops::topk::Kernels const kTopkFloat = {kWidth, extremes<float>, thresholdOfFew<float>, collect<float>,
                                       bestOfColumns<float>};
ops::topk::Kernels const kTopkHalf = {kWidth, extremes<Half>, thresholdOfFew<Half>, collect<Half>, bestOfColumns<Half>};
ops::topk::Kernels const kTopkInt8 = {kWidth, extremes<int8_t>, thresholdOfFew<int8_t>, collect<int8_t>,
                                      bestOfColumns<int8_t>};

} // namespace tw::TW_ISA
