// SPDX-License-Identifier: Apache-2.0
// Vectors of floats and of as many int32_t, for the kernels of *_vectors.h alone, behind TW_ISA and TW_FLOATS. Each
// source has its own copy, so that none for one instruction set is linked for another.
#pragma once

#include <cstdint>

#include <immintrin.h>

namespace tw::TW_ISA {

namespace {

constexpr int64_t kFloats = TW_FLOATS;
using V [[gnu::vector_size(TW_FLOATS * 4)]] = float;
using I [[gnu::vector_size(TW_FLOATS * 4)]] = int32_t;

// Vectors are aligned where they are variables, nowhere else.
template <class T = V>
inline T load(float const* p)
{
    T v;
    __builtin_memcpy(&v, p, sizeof(T));
    return v;
}
inline void store(float* p, V v)
{
    __builtin_memcpy(p, &v, sizeof(V));
}
// a b + c, rounded once.
inline V sumOfProduct(V a, V b, V c)
{
#if TW_FLOATS == 16
    return V(_mm512_fmadd_ps(__m512(a), __m512(b), __m512(c)));
#else
    return V(_mm256_fmadd_ps(__m256(a), __m256(b), __m256(c)));
#endif
}

// exp(v) for v <= 0, or NaN: 2^n (1 + f P(f)), |f| <= 1/2, relative error of the polynomial below 1e-7. 0 from -127 ln 2
// on.
[[gnu::always_inline]] inline V powerOf(V v)
{
    constexpr float kLog2e = 1.44269504f, kLowest = -88.02969f, kWhole = 12582912.f + 127;
    V const x = v < V{} + kLowest ? V{} + kLowest : v; // NaN stays
    V const n = x * kLog2e + kWhole;                   // n + 127 in the lowest bits
    V const f = x * kLog2e - (n - kWhole);
    V p = V{} + 0.001326472614891827f;
    p = p * f + 0.009671512991189957f;
    p = p * f + 0.05550733581185341f;
    p = p * f + 0.24022242426872253f;
    p = p * f + 0.6931470036506653f;
    p = p * f + 1.f;
    return p * V(I(n) << 23);
}

} // namespace

} // namespace tw::TW_ISA
