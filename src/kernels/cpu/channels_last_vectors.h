// SPDX-License-Identifier: Apache-2.0
// The kernels of channels_last.h, written once with the compiler's vector types and compiled into each instruction
// set's namespace. For the ISA files alone, which define TW_ISA (the namespace) and TW_FLOATS (in a vector).
#include "kernels/cpu/channels_last.h"
#include "kernels/cpu/float_vectors.h"

namespace tw::TW_ISA {

namespace {

using kernels::MixPixels;
using kernels::PoolRow;

constexpr int64_t kLineFloats = 16; // of a cache line

inline int64_t rounded(int64_t channels)
{
    return (channels + kLineFloats - 1) / kLineFloats * kLineFloats;
}
inline V vectorOf(float v)
{
    return V{} + v;
}

// Rows of 8 floats become columns.
inline void transpose8(__m256 r[8])
{
    __m256 t[8], u[8];
    for (int i = 0; i < 4; ++i) {
        t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
    for (int i = 0; i < 2; ++i) {
        u[4 * i] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0x44);
        u[4 * i + 1] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0xee);
        u[4 * i + 2] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0x44);
        u[4 * i + 3] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0xee);
    }
    for (int i = 0; i < 4; ++i) {
        r[i] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
        r[i + 4] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
    }
}

// The halves of four rows are 4 x 4 blocks, each of which becomes its columns.
inline void transpose4(__m256 r[4])
{
    __m256 const t[] = {_mm256_unpacklo_ps(r[0], r[1]), _mm256_unpackhi_ps(r[0], r[1]), _mm256_unpacklo_ps(r[2], r[3]),
                        _mm256_unpackhi_ps(r[2], r[3])};
    r[0] = _mm256_shuffle_ps(t[0], t[2], 0x44);
    r[1] = _mm256_shuffle_ps(t[0], t[2], 0xee);
    r[2] = _mm256_shuffle_ps(t[1], t[3], 0x44);
    r[3] = _mm256_shuffle_ps(t[1], t[3], 0xee);
}

void toNhwc(float const* x, int64_t channelStep, float* y, int64_t step, int64_t channels, int64_t pixels)
{
    int64_t p = 0;
    for (; p + 8 <= pixels; p += 8)
        for (int64_t c = 0; c < channels; c += 8) {
            __m256 r[8];
            for (int i = 0; i < 8; ++i) // after the last channel: the last one again
                r[i] = _mm256_loadu_ps(x + (c + i < channels ? c + i : channels - 1) * channelStep + p);
            transpose8(r);
            for (int i = 0; i < 8; ++i)
                _mm256_storeu_ps(y + (p + i) * step + c, r[i]);
        }
    for (; p < pixels; ++p)
        for (int64_t c = 0; c < channels; ++c)
            y[p * step + c] = x[c * channelStep + p];
}

void fromNhwc(float const* x, int64_t step, float* y, int64_t channelStep, int64_t channels, int64_t pixels)
{
    int64_t p = 0;
    for (; p + 8 <= pixels; p += 8)
        for (int64_t c = 0; c < channels; c += 8) {
            __m256 r[8];
            for (int i = 0; i < 8; ++i)
                r[i] = _mm256_loadu_ps(x + (p + i) * step + c);
            transpose8(r);
            int64_t const n = channels - c < 8 ? channels - c : 8;
            for (int i = 0; i < n; ++i)
                _mm256_storeu_ps(y + (c + i) * channelStep + p, r[i]);
        }
    for (; p < pixels; ++p)
        for (int64_t c = 0; c < channels; ++c)
            y[c * channelStep + p] = x[p * step + c];
}

void copy(float const* x, int64_t xStep, float* y, int64_t yStep, int64_t channels, int64_t pixels)
{
    int64_t const n = rounded(channels);
    for (int64_t p = 0; p < pixels; ++p, x += xStep, y += yStep)
        for (int64_t c = 0; c < n; c += kFloats)
            store(y + c, load(x + c));
}

void fill(float value, float* y, int64_t yStep, int64_t channels, int64_t pixels)
{
    int64_t const n = rounded(channels);
    for (int64_t p = 0; p < pixels; ++p, y += yStep)
        for (int64_t c = 0; c < n; c += kFloats)
            store(y + c, vectorOf(value));
}

// kVectors vectors of channels of one output pixel; NaN wins over every number.
template <int kVectors>
void poolMax(PoolRow const& r, float const* x, int64_t taps, float* y)
{
    V acc[kVectors];
    for (V& a : acc)
        a = vectorOf(-__builtin_inff());
    for (int64_t i0 = 0; i0 < r.rows0; ++i0)
        for (int64_t i1 = 0; i1 < r.rows1; ++i1) {
            float const* at = x + i0 * r.step0 + i1 * r.step1;
            for (int64_t t = 0; t < taps; ++t, at += r.step)
                for (int i = 0; i < kVectors; ++i) {
                    V const v = load(at + i * kFloats);
                    V const m = v > acc[i] ? v : acc[i];
                    acc[i] = v != v ? v : m;
                }
        }
    for (int i = 0; i < kVectors; ++i)
        store(y + i * kFloats, acc[i]);
}

template <int kVectors>
void poolSum(PoolRow const& r, float const* x, int64_t taps, float scale, float* y)
{
    V acc[kVectors]{};
    for (int64_t i0 = 0; i0 < r.rows0; ++i0)
        for (int64_t i1 = 0; i1 < r.rows1; ++i1) {
            float const* at = x + i0 * r.step0 + i1 * r.step1;
            V row[kVectors]{};
            for (int64_t t = 0; t < taps; ++t, at += r.step)
                for (int i = 0; i < kVectors; ++i)
                    row[i] += load(at + i * kFloats);
            for (int i = 0; i < kVectors; ++i)
                acc[i] += row[i];
        }
    for (int i = 0; i < kVectors; ++i)
        store(y + i * kFloats, acc[i] * vectorOf(scale));
}

void poolRow(PoolRow const& r)
{
    int64_t const n = rounded(r.channels);
    constexpr int64_t kFour = 4 * kFloats;
    for (int64_t o = 0; o < r.out; ++o) {
        int64_t const start = o * r.stride - r.before, stop = start + r.window;
        int64_t const begin = start > 0 ? start : 0;
        int64_t const end = stop < r.in ? stop : r.in, taps = end > begin ? end - begin : 0;
        int64_t const padded = (stop < r.in + r.after ? stop : r.in + r.after) - start;
        float const* x = r.x + begin * r.step;
        float* y = r.y + o * r.yStep;
        if (!r.average) {
            int64_t c = 0;
            for (; c + kFour <= n; c += kFour)
                poolMax<4>(r, x + c, taps, y + c);
            for (; c < n; c += kFloats)
                poolMax<1>(r, x + c, taps, y + c);
            continue;
        }
        float const inside = float(r.rows0 * r.rows1 * taps);
        float const scale = inside == 0 ? 0 : 1 / (r.excludePadding ? inside : r.paddedRows * float(padded));
        int64_t c = 0;
        for (; c + kFour <= n; c += kFour)
            poolSum<4>(r, x + c, taps, scale, y + c);
        for (; c < n; c += kFloats)
            poolSum<1>(r, x + c, taps, scale, y + c);
    }
}

// Runs of 64 pixels are summed apart: the error grows with their number and length, not with the product.
template <int kVectors>
void sumBlock(float const* x, int64_t step, int64_t pixels, float scale, float* y)
{
    V total[kVectors]{};
    for (int64_t p = 0; p < pixels; p += 64) {
        V even[kVectors]{}, odd[kVectors]{};
        int64_t const end = p + 64 < pixels ? p + 64 : pixels;
        int64_t q = p;
        for (; q + 2 <= end; q += 2)
            for (int i = 0; i < kVectors; ++i) {
                even[i] += load(x + q * step + i * kFloats);
                odd[i] += load(x + (q + 1) * step + i * kFloats);
            }
        for (int i = 0; i < kVectors; ++i) {
            if (q < end)
                even[i] += load(x + q * step + i * kFloats);
            total[i] += even[i] + odd[i];
        }
    }
    for (int i = 0; i < kVectors; ++i)
        store(y + i * kFloats, total[i] * vectorOf(scale));
}

void sum(float const* x, int64_t step, int64_t channels, int64_t pixels, float scale, float* y)
{
    int64_t const n = rounded(channels);
    int64_t c = 0;
    for (; c + 4 * kFloats <= n; c += 4 * kFloats)
        sumBlock<4>(x + c, step, pixels, scale, y + c);
    for (; c < n; c += kFloats)
        sumBlock<1>(x + c, step, pixels, scale, y + c);
}

void mix(MixPixels const& m)
{
    int64_t const n = rounded(m.channels);
    for (int64_t c = 0; c < n; c += kFloats) {
        V acc = load(m.x[0] + c) * vectorOf(m.weight[0]);
        for (int t = 1; t < m.taps; ++t)
            acc += load(m.x[t] + c) * vectorOf(m.weight[t]);
        store(m.y + c, acc);
    }
}

float sumRow(float const* x, int64_t n)
{
    V total[4]{};
    int64_t i = 0;
    for (; i + 4 * kFloats <= n; i += 4 * kFloats)
        for (int k = 0; k < 4; ++k)
            total[k] += load(x + i + k * kFloats);
    for (; i + kFloats <= n; i += kFloats)
        total[0] += load(x + i);
    V const v = (total[0] + total[1]) + (total[2] + total[3]);
    float sum = 0;
    for (int k = 0; k < kFloats; ++k)
        sum += v[k];
    for (; i < n; ++i)
        sum += x[i];
    return sum;
}

inline V gather(float const* x, int32_t const* index)
{
#if TW_FLOATS == 16 // masked: the plain one makes GCC 12 warn of its own header
    return V(_mm512_mask_i32gather_ps(_mm512_setzero_ps(), 0xffff, _mm512_loadu_si512(index), x, 4));
#else
    return V(_mm256_i32gather_ps(x, _mm256_loadu_si256(reinterpret_cast<__m256i const*>(index)), 4));
#endif
}

void mixColumns(float const* x, int32_t const* from, int32_t const* to, float const* first, float const* second,
                int64_t n, float* y)
{
    auto const part = [](auto w, auto v) { return w == 0 ? w : w * v; };
    int64_t i = 0;
    for (; i + kFloats <= n; i += kFloats)
        store(y + i, part(load(first + i), gather(x, from + i)) + part(load(second + i), gather(x, to + i)));
    for (; i < n; ++i)
        y[i] = part(first[i], x[from[i]]) + part(second[i], x[to[i]]);
}

void mixRows(float const* a, float const* b, float wa, float wb, int64_t n, float* y)
{
    V const va = vectorOf(wa), vb = vectorOf(wb);
    int64_t i = 0;
    for (; i + kFloats <= n; i += kFloats)
        store(y + i, va * load(a + i) + vb * load(b + i));
    for (; i < n; ++i)
        y[i] = wa * a[i] + wb * b[i];
}

// Four rows by `columns`, a multiple of 8.
void transposeRows4(float const* x, int64_t xStep, float* y, int64_t yStep, int64_t columns)
{
    for (int64_t c = 0; c < columns; c += 8) {
        __m256 block[4];
        for (int i = 0; i < 4; ++i)
            block[i] = _mm256_loadu_ps(x + i * xStep + c);
        transpose4(block);
        for (int i = 0; i < 4; ++i) {
            _mm_storeu_ps(y + (c + i) * yStep, _mm256_castps256_ps128(block[i]));
            _mm_storeu_ps(y + (c + i + 4) * yStep, _mm256_extractf128_ps(block[i], 1));
        }
    }
}

// Four columns of `rows`, a multiple of 8.
void transposeColumns4(float const* x, int64_t xStep, float* y, int64_t yStep, int64_t rows)
{
    for (int64_t r = 0; r < rows; r += 8) {
        __m256 block[4];
        for (int i = 0; i < 4; ++i)
            block[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(x + (r + i) * xStep)),
                                            _mm_loadu_ps(x + (r + i + 4) * xStep), 1);
        transpose4(block);
        for (int i = 0; i < 4; ++i)
            _mm256_storeu_ps(y + i * yStep + r, block[i]);
    }
}

void transpose(float const* x, int64_t xStep, float* y, int64_t yStep, int64_t rows, int64_t columns)
{
    int64_t wholeRows = rows / 8 * 8, wholeColumns = columns / 8 * 8;
    for (int64_t r = 0; r < wholeRows; r += 8)
        for (int64_t c = 0; c < wholeColumns; c += 8) {
            __m256 block[8];
            for (int i = 0; i < 8; ++i)
                block[i] = _mm256_loadu_ps(x + (r + i) * xStep + c);
            transpose8(block);
            for (int i = 0; i < 8; ++i)
                _mm256_storeu_ps(y + (c + i) * yStep + r, block[i]);
        }
    int64_t const rowsDone = wholeRows; // of the four columns that may follow the whole ones
    if (rows - wholeRows >= 4) {
        transposeRows4(x + wholeRows * xStep, xStep, y + wholeRows, yStep, wholeColumns);
        wholeRows += 4;
    }
    int64_t const eights = wholeColumns;
    if (columns - wholeColumns >= 4) {
        transposeColumns4(x + wholeColumns, xStep, y + wholeColumns * yStep, yStep, rowsDone);
        wholeColumns += 4;
    }
    for (int64_t c = 0; c < columns; ++c)
        for (int64_t r = c < eights ? wholeRows : c < wholeColumns ? rowsDone : 0; r < rows; ++r)
            y[c * yStep + r] = x[r * xStep + c];
}

} // namespace

extern kernels::ChannelsLastKernels const kChannelsLast = {toNhwc, fromNhwc, copy,       fill,    poolRow,  sum,
                                                           mix,    sumRow,   mixColumns, mixRows, transpose};

} // namespace tw::TW_ISA
