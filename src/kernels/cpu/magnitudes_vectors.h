// SPDX-License-Identifier: Apache-2.0
// The kernels of magnitudes.h, written once with the compiler's vector types and compiled into each instruction set's
// namespace. For the ISA files alone, which define TW_ISA (the namespace) and TW_FLOATS (in a vector).
#include "kernels/cpu/float_vectors.h"
#include "kernels/cpu/magnitudes.h"

namespace tw::TW_ISA {

namespace {

inline I magnitudeBits(float const* x)
{
    I bits;
    __builtin_memcpy(&bits, x, sizeof bits);
    return bits & 0x7fffffff;
}

uint32_t largest(float const* x, int64_t n)
{
    I most[4] = {};
    int64_t i = 0;
    for (; i + 4 * kFloats <= n; i += 4 * kFloats)
        for (int64_t k = 0; k < 4; ++k) {
            I const bits = magnitudeBits(x + i + k * kFloats);
            most[k] = bits > most[k] ? bits : most[k];
        }
    int32_t all = 0;
    for (int64_t k = 0; k < 4; ++k)
        for (int64_t l = 0; l < kFloats; ++l)
            all = most[k][l] > all ? most[k][l] : all;
    for (; i < n; ++i) {
        int32_t bits;
        __builtin_memcpy(&bits, x + i, sizeof bits);
        bits &= 0x7fffffff;
        all = bits > all ? bits : all;
    }
    return uint32_t(all);
}

// Zeros go to a place of each lane behind the bins, so that they do not wait for each other.
inline I placesOf(float const* x, float binsPerUnit, I const& behind)
{
    I const bits = magnitudeBits(x);
    V const scaled = V(bits) * binsPerUnit;
#if TW_FLOATS == 16
    I bin = I(_mm512_maskz_cvttps_epi32(0xffff, __m512(scaled)));
#else
    I bin = I(_mm256_cvttps_epi32(__m256(scaled)));
#endif
    bin = bin < kernels::kMagnitudeBins - 1 ? bin : I{} + (kernels::kMagnitudeBins - 1);
    return bits == 0 ? behind : bin;
}

void count(float const* x, int64_t n, float binsPerUnit, uint32_t* counts)
{
    constexpr int64_t kCopies = kernels::kMagnitudeCopies, kCounters = kernels::kMagnitudeCounters;
    I behind;
    for (int64_t l = 0; l < kFloats; ++l)
        behind[l] = int32_t(kernels::kMagnitudeBins + l);
    int32_t places[kFloats];
    int64_t i = 0;
    for (; i + kFloats <= n; i += kFloats) {
        I const v = placesOf(x + i, binsPerUnit, behind);
        __builtin_memcpy(places, &v, sizeof v);
        for (int64_t l = 0; l < kFloats; ++l)
            ++counts[l % kCopies * kCounters + places[l]];
    }
    if (i == n)
        return;
    float rest[kFloats] = {};
    __builtin_memcpy(rest, x + i, size_t(n - i) * sizeof(float));
    I const v = placesOf(rest, binsPerUnit, behind);
    __builtin_memcpy(places, &v, sizeof v);
    for (int64_t l = 0; l < n - i; ++l)
        ++counts[l % kCopies * kCounters + places[l]];
}

} // namespace

extern kernels::MagnitudeKernels const kMagnitudes = {largest, count};

} // namespace tw::TW_ISA
