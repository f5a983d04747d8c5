// SPDX-License-Identifier: Apache-2.0
// The kernels of int8_pixels.h, written once with the compiler's vector types and compiled into each instruction set's
// namespace. For the ISA files alone, which define TW_ISA (the namespace) and TW_FLOATS (in a vector).
#include "kernels/cpu/float_vectors.h"
#include "kernels/cpu/int8_pixels.h"

namespace tw::TW_ISA {

namespace {

using PoolRow8 = kernels::PoolRowOf<int8_t>;

constexpr int64_t kLineBytes = 64;        // of a cache line
constexpr int64_t kBytes = TW_FLOATS * 4; // of a vector
using Bytes [[gnu::vector_size(TW_FLOATS * 4)]] = int8_t;
using Quarter [[gnu::vector_size(TW_FLOATS)]] = int8_t; // as many as floats

inline I wide(int8_t const* p)
{
#if TW_FLOATS == 16
    return I(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<__m128i const*>(p))));
#else
    return I(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<__m128i const*>(p))));
#endif
}
inline I nearest(V v)
{
#if TW_FLOATS == 16
    return I(_mm512_cvtps_epi32(__m512(v)));
#else
    return I(_mm256_cvtps_epi32(__m256(v)));
#endif
}

// One cache line of channels of one output pixel.
void poolMax(PoolRow8 const& r, int8_t const* x, int64_t taps, int8_t* y)
{
    constexpr int kVectors = int(kLineBytes / kBytes);
    Bytes acc[kVectors];
    for (Bytes& a : acc)
        a = Bytes{} + int8_t(-128);
    for (int64_t i0 = 0; i0 < r.rows0; ++i0)
        for (int64_t i1 = 0; i1 < r.rows1; ++i1) {
            int8_t const* at = x + i0 * r.step0 + i1 * r.step1;
            for (int64_t t = 0; t < taps; ++t, at += r.step)
                for (int i = 0; i < kVectors; ++i) {
                    Bytes v;
                    __builtin_memcpy(&v, at + i * kBytes, kBytes);
                    acc[i] = v > acc[i] ? v : acc[i];
                }
        }
    __builtin_memcpy(y, acc, sizeof(acc));
}

void poolAverage(PoolRow8 const& r, int8_t const* x, int64_t taps, float count, int8_t* y)
{
    constexpr int kVectors = int(kLineBytes / TW_FLOATS);
    I acc[kVectors]{};
    for (int64_t i0 = 0; i0 < r.rows0; ++i0)
        for (int64_t i1 = 0; i1 < r.rows1; ++i1) {
            int8_t const* at = x + i0 * r.step0 + i1 * r.step1;
            for (int64_t t = 0; t < taps; ++t, at += r.step)
                for (int i = 0; i < kVectors; ++i)
                    acc[i] += wide(at + i * TW_FLOATS);
        }
    for (int i = 0; i < kVectors; ++i) {
        I const q = nearest(__builtin_convertvector(acc[i], V) / (V{} + count));
        Quarter const bytes = __builtin_convertvector(q, Quarter);
        __builtin_memcpy(y + i * TW_FLOATS, &bytes, sizeof(bytes));
    }
}

void poolRow(PoolRow8 const& r)
{
    for (int64_t o = 0; o < r.out; ++o) {
        int64_t const start = o * r.stride - r.before, stop = start + r.window;
        int64_t const begin = start > 0 ? start : 0;
        int64_t const end = stop < r.in ? stop : r.in, taps = end > begin ? end - begin : 0;
        int64_t const padded = (stop < r.in + r.after ? stop : r.in + r.after) - start;
        int8_t const* x = r.x + begin * r.step;
        int8_t* y = r.y + o * r.yStep;
        float const inside = float(r.rows0 * r.rows1 * taps);
        float const count = inside == 0 ? 1 : r.excludePadding ? inside : r.paddedRows * float(padded);
        for (int64_t c = 0; c < r.channels; c += kLineBytes)
            if (r.average)
                poolAverage(r, x + c, taps, count, y + c);
            else
                poolMax(r, x + c, taps, y + c);
    }
}

// Rows of 16 bytes become columns.
inline void transpose16(__m128i r[16])
{
    __m128i t[16];
    // Each step puts element k of row i beside element k of row i + 8; after four steps rows are columns.
    for (int step = 0; step < 4; ++step) {
        for (int i = 0; i < 8; ++i) {
            t[2 * i] = _mm_unpacklo_epi8(r[i], r[i + 8]);
            t[2 * i + 1] = _mm_unpackhi_epi8(r[i], r[i + 8]);
        }
        for (int i = 0; i < 16; ++i)
            r[i] = t[i];
    }
}

// y[c * yStep + r] = x[r * xStep + c].
void transpose(int8_t const* x, int64_t xStep, int8_t* y, int64_t yStep, int64_t rows, int64_t columns)
{
    int64_t const wholeRows = rows / 16 * 16, wholeColumns = columns / 16 * 16;
    for (int64_t r = 0; r < wholeRows; r += 16)
        for (int64_t c = 0; c < wholeColumns; c += 16) {
            __m128i block[16];
            for (int i = 0; i < 16; ++i)
                block[i] = _mm_loadu_si128(reinterpret_cast<__m128i const*>(x + (r + i) * xStep + c));
            transpose16(block);
            for (int i = 0; i < 16; ++i)
                _mm_storeu_si128(reinterpret_cast<__m128i*>(y + (c + i) * yStep + r), block[i]);
        }
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = r < wholeRows ? wholeColumns : 0; c < columns; ++c)
            y[c * yStep + r] = x[r * xStep + c];
}

void toNhwc(int8_t const* x, int64_t channelStep, int8_t* y, int64_t step, int64_t channels, int64_t pixels)
{
    transpose(x, channelStep, y, step, channels, pixels);
}
void fromNhwc(int8_t const* x, int64_t step, int8_t* y, int64_t channelStep, int64_t channels, int64_t pixels)
{
    transpose(x, step, y, channelStep, pixels, channels);
}

} // namespace

extern kernels::Int8PixelKernels const kInt8Pixels = {poolRow, toNhwc, fromNhwc};

} // namespace tw::TW_ISA
