// SPDX-License-Identifier: Apache-2.0
// The pass over scores, written once for both instruction sets. For the ISA files alone, which define TW_ISA (the
// namespace) and TW_FLOATS (in a vector).
#include <immintrin.h>

#include "ops/detection/kernels.h"

namespace tw::TW_ISA {

namespace {

constexpr int64_t kWidth = TW_FLOATS, kVectors = 4;

// Bits of the elements that pass, of a vector.
#if TW_FLOATS == 16
template <int kPredicate>
inline unsigned passing(float const* x, float least)
{
    return _mm512_cmp_ps_mask(_mm512_loadu_ps(x), _mm512_set1_ps(least), kPredicate);
}
template <int kPredicate>
inline unsigned passing(uint16_t const* x, float least)
{
    __m256i const bits = _mm256_loadu_si256(reinterpret_cast<__m256i const*>(x));
    return _mm512_cmp_ps_mask(_mm512_maskz_cvtph_ps(0xffff, bits), _mm512_set1_ps(least), kPredicate);
}
#else
template <int kPredicate>
inline unsigned passing(float const* x, float least)
{
    return unsigned(_mm256_movemask_ps(_mm256_cmp_ps(_mm256_loadu_ps(x), _mm256_set1_ps(least), kPredicate)));
}
template <int kPredicate>
inline unsigned passing(uint16_t const* x, float least)
{
    __m128i const bits = _mm_loadu_si128(reinterpret_cast<__m128i const*>(x));
    return unsigned(_mm256_movemask_ps(_mm256_cmp_ps(_mm256_cvtph_ps(bits), _mm256_set1_ps(least), kPredicate)));
}
#endif

template <class T, int kPredicate>
int64_t collectBy(T const* x, int64_t begin, int64_t n, float least, int32_t* to, int64_t room, int64_t* end)
{
    int64_t count = 0, i = begin;
    while (i < n && count + kVectors * kWidth <= room) {
        T part[kVectors * kWidth];
        int64_t const left = n - i;
        T const* from = x + i;
        if (left < kVectors * kWidth) { // the last ones, and the first of them again
            for (int64_t k = 0; k < kVectors * kWidth; ++k)
                part[k] = x[k < left ? i + k : i];
            from = part;
        }
        uint64_t bits = 0;
        for (int v = 0; v < kVectors; ++v)
            bits |= uint64_t(passing<kPredicate>(from + v * kWidth, least)) << (v * kWidth);
        if (left < kVectors * kWidth)
            bits &= (uint64_t(1) << left) - 1;
        for (; bits != 0; bits &= bits - 1)
            to[count++] = int32_t(i + __builtin_ctzll(bits));
        i += left < kVectors * kWidth ? left : kVectors * kWidth;
    }
    *end = i;
    return count;
}

template <class T>
int64_t collect(void const* x, int64_t begin, int64_t n, bool above, float least, int32_t* to, int64_t room,
                int64_t* end)
{
    auto const* from = static_cast<T const*>(x);
    return above ? collectBy<T, _CMP_GT_OQ>(from, begin, n, least, to, room, end)
                 : collectBy<T, _CMP_GE_OQ>(from, begin, n, least, to, room, end);
}

} // namespace

ops::detection::Collect const kCollectFloat = collect<float>, kCollectHalf = collect<uint16_t>;

} // namespace tw::TW_ISA
