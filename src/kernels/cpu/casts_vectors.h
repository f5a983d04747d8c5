// SPDX-License-Identifier: Apache-2.0
// The kernels of casts.h, written once with the compiler's vector types and compiled into each instruction set's
// namespace. For the ISA files alone, which define TW_ISA (the namespace) and TW_FLOATS (in a vector).
#include "kernels/cpu/casts.h"
#include "kernels/cpu/float_vectors.h"

namespace tw::TW_ISA {

namespace {

using H [[gnu::vector_size(TW_FLOATS * 2)]] = uint16_t;
using B [[gnu::vector_size(TW_FLOATS)]] = uint8_t;
using SignedB [[gnu::vector_size(TW_FLOATS)]] = int8_t;

inline void convert(V v, I& to)
{
#if TW_FLOATS == 16
    I const cut = I(_mm512_maskz_cvttps_epi32(0xffff, __m512(v)));
#else
    I const cut = I(_mm256_cvttps_epi32(__m256(v)));
#endif
    // The instruction gives INT32_MIN for whatever does not fit.
    to = (cut ^ (v >= 2147483648.f)) & (v == v);
}
inline void convert(I v, V& to)
{
    to = __builtin_convertvector(v, V);
}
inline void convert(V v, H& to)
{
#if TW_FLOATS == 16
    to = H(_mm512_maskz_cvtps_ph(0xffff, __m512(v), _MM_FROUND_TO_NEAREST_INT));
#else
    to = H(_mm256_cvtps_ph(__m256(v), _MM_FROUND_TO_NEAREST_INT));
#endif
}
inline void convert(H v, V& to)
{
#if TW_FLOATS == 16
    to = V(_mm512_maskz_cvtph_ps(0xffff, __m256i(v)));
#else
    to = V(_mm256_cvtph_ps(__m128i(v)));
#endif
}
inline void convert(V v, B& to)
{
    to = B(__builtin_convertvector(v != 0, SignedB)) & 1;
}
inline void convert(B v, V& to)
{
    to = __builtin_convertvector(__builtin_convertvector(B(v != 0) & 1, I), V);
}

// The upper half of a float's bits, rounded by what the lower half holds.
struct Bfloat16s
{
    H bits;
};
inline void convert(V v, Bfloat16s& to)
{
    using U [[gnu::vector_size(TW_FLOATS * 4)]] = uint32_t;
    U const bits = U(v), rounded = bits + 0x7fff + (bits >> 16 & 1), quiet = bits | 0x400000;
    to.bits = __builtin_convertvector((v == v ? rounded : quiet) >> 16, H);
}

inline void convert(Bfloat16s v, V& to)
{
    using U [[gnu::vector_size(TW_FLOATS * 4)]] = uint32_t;
    to = V(__builtin_convertvector(v.bits, U) << 16);
}

// X, Y: vectors of the elements From and To.
template <class X, class Y, class From, class To>
void row(From const* x, To* y, int64_t n)
{
    int64_t i = 0;
    X in;
    Y out;
    for (; i + kFloats <= n; i += kFloats) {
        __builtin_memcpy(&in, x + i, sizeof in);
        convert(in, out);
        __builtin_memcpy(y + i, &out, sizeof out);
    }
    if (i == n)
        return;
    in = X{};
    __builtin_memcpy(&in, x + i, size_t(n - i) * sizeof(From));
    convert(in, out);
    __builtin_memcpy(y + i, &out, size_t(n - i) * sizeof(To));
}

} // namespace

extern kernels::CastKernels const kCasts = {row<V, I, float, int32_t>,          row<I, V, int32_t, float>,
                                            row<V, H, float, uint16_t>,         row<H, V, uint16_t, float>,
                                            row<V, B, float, uint8_t>,          row<B, V, uint8_t, float>,
                                            row<V, Bfloat16s, float, uint16_t>, row<Bfloat16s, V, uint16_t, float>};

} // namespace tw::TW_ISA
