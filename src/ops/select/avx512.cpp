// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "ops/select/kernels.h"

namespace tw::avx512 {

namespace {

using ops::select::Row;
using V = __m512i;

// The vector operations on elements of one size; masks have a bit for each element.
template <int kBytes>
struct Of;
template <>
struct Of<4>
{
    using T = uint32_t;
    using Mask = __mmask16;
    static V load(Mask m, void const* x) { return _mm512_maskz_loadu_epi32(m, x); }
    static void store(void* y, Mask m, V v) { _mm512_mask_storeu_epi32(y, m, v); }
    static V spread(T v) { return _mm512_set1_epi32(int32_t(v)); }
    static V choose(Mask m, V a, V b) { return _mm512_mask_blend_epi32(m, b, a); }
    static Mask isSet(Mask m, uint8_t const* c)
    {
        __m128i const v = _mm_maskz_loadu_epi8(m, c);
        return _mm_test_epi8_mask(v, v);
    }
};
template <>
struct Of<2>
{
    using T = uint16_t;
    using Mask = __mmask32;
    static V load(Mask m, void const* x) { return _mm512_maskz_loadu_epi16(m, x); }
    static void store(void* y, Mask m, V v) { _mm512_mask_storeu_epi16(y, m, v); }
    static V spread(T v) { return _mm512_set1_epi16(int16_t(v)); }
    static V choose(Mask m, V a, V b) { return _mm512_mask_blend_epi16(m, b, a); }
    static Mask isSet(Mask m, uint8_t const* c)
    {
        __m256i const v = _mm256_maskz_loadu_epi8(m, c);
        return _mm256_test_epi8_mask(v, v);
    }
};
template <>
struct Of<1>
{
    using T = uint8_t;
    using Mask = __mmask64;
    static V load(Mask m, void const* x) { return _mm512_maskz_loadu_epi8(m, x); }
    static void store(void* y, Mask m, V v) { _mm512_mask_storeu_epi8(y, m, v); }
    static V spread(T v) { return _mm512_set1_epi8(int8_t(v)); }
    static V choose(Mask m, V a, V b) { return _mm512_mask_blend_epi8(m, b, a); }
    static Mask isSet(Mask m, uint8_t const* c)
    {
        V const v = _mm512_maskz_loadu_epi8(m, c);
        return _mm512_test_epi8_mask(v, v);
    }
};

template <int kBytes, bool kBool>
void choose(Row const& r)
{
    using O = Of<kBytes>;
    using T = typename O::T;
    using Mask = typename O::Mask;
    constexpr int64_t kWidth = 64 / kBytes;
    auto const *a = static_cast<T const*>(r.a), *b = static_cast<T const*>(r.b);
    auto* y = static_cast<T*>(r.y);
    V const aOne = O::spread(*a), bOne = O::spread(*b);
    Mask const cOne = *r.c ? Mask(~Mask(0)) : Mask(0);
    auto vector = [&](int64_t i, Mask use) {
        Mask const c = r.cIsOne ? cOne : O::isSet(use, r.c + i);
        V const av = r.aIsOne ? aOne : O::load(use, a + i);
        V const bv = r.bIsOne ? bOne : O::load(use, b + i);
        V v = O::choose(c, av, bv);
        if constexpr (kBool)
            v = _mm512_maskz_mov_epi8(_mm512_test_epi8_mask(v, v), _mm512_set1_epi8(1));
        O::store(y + i, use, v);
    };
    int64_t i = 0;
    for (; i + kWidth <= r.n; i += kWidth)
        vector(i, Mask(~Mask(0)));
    if (i < r.n)
        vector(i, Mask((Mask(1) << (r.n - i)) - 1));
}

} // namespace

ops::select::Kernels const kSelect = {choose<4, false>, choose<2, false>, choose<1, false>, choose<1, true>};

} // namespace tw::avx512
