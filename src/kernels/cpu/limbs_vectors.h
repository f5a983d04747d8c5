// SPDX-License-Identifier: Apache-2.0
// The kernels of limbs.h, for the ISA files alone, which define TW_ISA (the namespace) and TW_FLOATS (in a vector).
#include "kernels/cpu/float_vectors.h"
#include "kernels/cpu/limbs.h"

namespace tw::TW_ISA {

namespace {

namespace limbs {

using B [[gnu::vector_size(TW_FLOATS)]] = int8_t;

inline I rounded(V v)
{
#if TW_FLOATS == 16
    return I(_mm512_maskz_cvtps_epi32(0xffff, __m512(v)));
#else
    return I(_mm256_cvtps_epi32(__m256(v)));
#endif
}

inline void storeBytes(int8_t* to, I v)
{
    B const bytes = __builtin_convertvector(v, B);
    __builtin_memcpy(to, &bytes, sizeof(B));
}

// Of all lanes, by a function of two vectors of four.
template <class F>
inline int32_t joined(I v, F const& f)
{
    __m128i parts[TW_FLOATS / 4];
    __builtin_memcpy(parts, &v, sizeof v);
    __m128i all = parts[0];
    for (int i = 1; i < TW_FLOATS / 4; ++i)
        all = f(all, parts[i]);
    all = f(all, _mm_shuffle_epi32(all, 0x4e));
    return _mm_cvtsi128_si32(f(all, _mm_shuffle_epi32(all, 0xb1)));
}
inline int32_t sumOf(I v)
{
    return joined(v, [](__m128i a, __m128i b) { return _mm_add_epi32(a, b); });
}
inline int32_t mostOf(I v)
{
    return joined(v, [](__m128i a, __m128i b) { return _mm_max_epi32(a, b); });
}

// Sums of 256 integers stay below 2^31.
void split(float const* x, int64_t n, int limbs, float factor, int8_t* to, float* pair)
{
    constexpr int32_t kInfinity = 0x7f800000;
    I sizes{};
    for (int64_t i = 0; i < n; i += kFloats) {
        I const size = I(load(x + i)) & 0x7fffffff; // in the order of the numbers, NaN last
        sizes = size > sizes ? size : sizes;
    }
    int32_t const most = mostOf(sizes);
    float largest;
    __builtin_memcpy(&largest, &most, sizeof most);
    largest = largest > 1e-30F ? largest : 1e-30F; // far below that numbers have no limbs
    // The highest limb stays below 128 when others round it up.
    float const range = limbs == 3 ? 0x7f0000 : limbs == 2 ? 0x7f00 : 0x7f;
    float const up = range / largest;
    I sum{};
    for (int64_t i = 0; i < n; i += kFloats) {
        I q = rounded(load(x + i) * up);
        sum += q;
        for (int limb = limbs - 1; limb > 0; --limb) {
            I const low = (q << 24) >> 24;
            storeBytes(to + limb * n + i, low);
            q = (q - low) >> 8;
        }
        storeBytes(to + i, q);
    }
    float const scale = most >= kInfinity ? __builtin_nanf("") : largest / range;
    pair[0] = scale;
    pair[1] = -factor * scale * float(sumOf(sum));
}

} // namespace limbs

} // namespace

extern kernels::LimbKernels const kLimbs = {limbs::split};

} // namespace tw::TW_ISA
