// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "ops/select/kernels.h"

namespace tw::avx2 {

namespace {

using ops::select::Row;
using V = __m256i;

inline V load(void const* x)
{
    return _mm256_loadu_si256(static_cast<V const*>(x));
}
inline void store(void* y, V v)
{
    _mm256_storeu_si256(static_cast<V*>(y), v);
}

// All ones where the condition is 0, for the elements of one vector.
template <class T>
inline V isZero(uint8_t const* c)
{
    V const zero = _mm256_setzero_si256();
    if constexpr (sizeof(T) == 4)
        return _mm256_cmpeq_epi32(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<__m128i const*>(c))), zero);
    else if constexpr (sizeof(T) == 2)
        return _mm256_cmpeq_epi16(_mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<__m128i const*>(c))), zero);
    else
        return _mm256_cmpeq_epi8(load(c), zero);
}

template <class T>
inline V spread(T v)
{
    if constexpr (sizeof(T) == 4)
        return _mm256_set1_epi32(int32_t(v));
    else if constexpr (sizeof(T) == 2)
        return _mm256_set1_epi16(int16_t(v));
    else
        return _mm256_set1_epi8(int8_t(v));
}

template <bool kBool>
inline V finished(V v)
{
    if constexpr (kBool)
        return _mm256_andnot_si256(_mm256_cmpeq_epi8(v, _mm256_setzero_si256()), _mm256_set1_epi8(1));
    return v;
}

template <class T, bool kBool>
void choose(Row const& r)
{
    constexpr int64_t kWidth = 32 / int64_t(sizeof(T));
    auto const *a = static_cast<T const*>(r.a), *b = static_cast<T const*>(r.b);
    auto* y = static_cast<T*>(r.y);
    V const aOne = spread(*a), bOne = spread(*b);
    int64_t i = 0;
    if (r.cIsOne) {
        T const* from = *r.c ? a : b;
        bool const one = *r.c ? r.aIsOne : r.bIsOne;
        V const all = *r.c ? aOne : bOne;
        for (; i + kWidth <= r.n; i += kWidth)
            store(y + i, finished<kBool>(one ? all : load(from + i)));
    } else {
        for (; i + kWidth <= r.n; i += kWidth) {
            V const av = r.aIsOne ? aOne : load(a + i), bv = r.bIsOne ? bOne : load(b + i);
            store(y + i, finished<kBool>(_mm256_blendv_epi8(av, bv, isZero<T>(r.c + i))));
        }
    }
    for (; i < r.n; ++i) {
        T const v = r.c[r.cIsOne ? 0 : i] ? a[r.aIsOne ? 0 : i] : b[r.bIsOne ? 0 : i];
        y[i] = kBool ? T(v != 0) : v;
    }
}

} // namespace

ops::select::Kernels const kSelect = {choose<uint32_t, false>, choose<uint16_t, false>, choose<uint8_t, false>,
                                      choose<uint8_t, true>};

} // namespace tw::avx2
