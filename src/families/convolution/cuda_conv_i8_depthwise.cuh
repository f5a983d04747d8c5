// SPDX-License-Identifier: Apache-2.0
// Depthwise convolutions of i8: each thread has V channels of COLUMNS outputs of a row. Of a row of x it holds what those
// need of it, and sorts the bytes of up to four taps by channels, so that an instruction (dp4a) adds four products.
// After integerEndSource().
//   int R, S, STRIDE, DILATION, COLUMNS, V, THREADS
#pragma once

#include "families/convolution/cuda_conv_depthwise_tile_params.h"
#include "kernels/cuda/common/dependence.cuh"
#include "kernels/cuda/common/integer_fours.cuh"

namespace tw::ops::conv_i8 {

constexpr int SEEN = (COLUMNS - 1) * STRIDE + (S - 1) * DILATION + 1, GROUPS = (S + 3) / 4, WORDS = V / 4;
constexpr int SECOND = GROUPS > 1 ? 4 : 0; // tap of the second group
struct alignas(V) Bytes
{
    u32 v[WORDS];
};
TW_INLINE u32 divide(u32 n, Div const& v)
{
    return (__umulhi(n, v.m) + n) >> v.s;
}
// Of TAPS pixels' four channels: words to be multiplied with those of the filters, one for each channel.
template <int TAPS>
TW_INLINE void byChannels(u32 (&to)[4], u32 a, u32 b, u32 c, u32 d)
{
    if constexpr (TAPS == 1) {
        to[0] = to[1] = to[2] = to[3] = a;
    } else {
        u32 const low = __byte_perm(a, b, 0x5140), high = __byte_perm(a, b, 0x7362);
        if constexpr (TAPS == 2) {
            to[0] = to[1] = low;
            to[2] = to[3] = high;
        } else if constexpr (TAPS == 3) {
            to[0] = __byte_perm(low, c, 0x4410);
            to[1] = __byte_perm(low, c, 0x5532);
            to[2] = __byte_perm(high, c, 0x6610);
            to[3] = __byte_perm(high, c, 0x7732);
        } else {
            u32 const low2 = __byte_perm(c, d, 0x5140), high2 = __byte_perm(c, d, 0x7362);
            to[0] = __byte_perm(low, low2, 0x5410);
            to[1] = __byte_perm(low, low2, 0x7632);
            to[2] = __byte_perm(high, high2, 0x5410);
            to[3] = __byte_perm(high, high2, 0x7632);
        }
    }
}
// The products of up to four taps of a row, from FIRST on.
template <int FIRST>
TW_INLINE void addTaps(i32 (&sum)[COLUMNS][V], Bytes const (&seen)[SEEN], u32 const* filters)
{
    constexpr int TAPS = S - FIRST < 4 ? S - FIRST : 4;
    constexpr int T0 = FIRST * DILATION, T1 = TAPS > 1 ? T0 + DILATION : T0, T2 = TAPS > 2 ? T1 + DILATION : T0,
                  T3 = TAPS > 3 ? T2 + DILATION : T0;
#pragma unroll
    for (int q = 0; q < WORDS; ++q) {
        uint4 const f = *reinterpret_cast<uint4 const*>(filters + q * 4);
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) {
            u32 x[4];
            byChannels<TAPS>(x, seen[j * STRIDE + T0].v[q], seen[j * STRIDE + T1].v[q], seen[j * STRIDE + T2].v[q],
                             seen[j * STRIDE + T3].v[q]);
            sum[j][q * 4] = __dp4a(int(x[0]), int(f.x), sum[j][q * 4]);
            sum[j][q * 4 + 1] = __dp4a(int(x[1]), int(f.y), sum[j][q * 4 + 1]);
            sum[j][q * 4 + 2] = __dp4a(int(x[2]), int(f.z), sum[j][q * 4 + 2]);
            sum[j][q * 4 + 3] = __dp4a(int(x[3]), int(f.w), sum[j][q * 4 + 3]);
        }
    }
}

TW_KERNEL __launch_bounds__(THREADS) depthwise(const __grid_constant__ DepthwiseParams p)
{
    waitForPrevious();
    releaseDependents();
    u32 const i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= p.count)
        return;
    u32 const pixels = divide(i, p.vectors), rows = divide(pixels, p.wide), image = divide(rows, p.tall);
    int const c = int(i - pixels * u32(p.vectors.d)) * V, q0 = int(pixels - rows * u32(p.wide.d)) * COLUMNS;
    int const o = int(rows - image * u32(p.tall.d)), h0 = o * p.strideH - p.padH, w0 = q0 * STRIDE - p.padW;
    i8 const* const x = p.x + i64(image) * p.h * p.w * p.pixelX + c;
    int const all = (p.channels + 15) / 16 * 16;
    u32 const* filters = p.filters + c;
    i32 sum[COLUMNS][V];
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j)
#pragma unroll
        for (int e = 0; e < V; ++e)
            sum[j][e] = 0;
#pragma unroll
    for (int r = 0; r < R; ++r, filters += GROUPS * all) {
        int const h = h0 + r * p.dilationH;
        bool const inside = u32(h) < u32(p.h);
        i8 const* const row = x + i64(h) * p.w * p.pixelX;
        Bytes seen[SEEN];
#pragma unroll
        for (int j = 0; j < SEEN; ++j) {
            seen[j] = Bytes{};
            if (inside && u32(w0 + j) < u32(p.w))
                seen[j] = *reinterpret_cast<Bytes const*>(row + i64(w0 + j) * p.pixelX);
        }
        addTaps<0>(sum, seen, filters);
        if constexpr (GROUPS > 1)
            addTaps<SECOND>(sum, seen, filters + all);
    }
    EndNumbers const numbers = endNumbers(p.end);
    i64 const first = i64(rows) * p.outW + q0;
    u32 words[COLUMNS][WORDS]; // of y, where it is i8
#pragma unroll
    for (int q = 0; q < WORDS; ++q) {
        int const channel = c + q * 4, left = p.channels - channel;
        float scale[4], bias[4];
#pragma unroll
        for (int e = 0; e < 4; ++e) { // what fills pixels up has no scale of its own
            int const k = min(channel + e, p.channels - 1);
            scale[e] = endScale(p.end, k);
            bias[e] = endBias(p.end, k);
        }
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) {
            bool const isThere = q0 + j < p.outW;
            i32 const(&s)[4] = *reinterpret_cast<i32(*)[4]>(&sum[j][q * 4]);
            float v[4];
            endFour(v, s, scale, bias, numbers,
                    static_cast<EndResidual const*>(p.end.residual) + (first + j) * p.pixelResidual + channel,
                    isThere ? left : 0);
            if constexpr (sizeof(EndElement) == 1)
                words[j][q] = packFour(v, p.end.table);
            else
                putFour(static_cast<EndElement*>(p.y) + (first + j) * p.pixelY + channel, v, p.end.table,
                        isThere ? left : 0);
        }
    }
    if constexpr (sizeof(EndElement) == 1)
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j)
            if (q0 + j < p.outW) {
                Bytes out;
#pragma unroll
                for (int q = 0; q < WORDS; ++q)
                    out.v[q] = words[j][q];
                *reinterpret_cast<Bytes*>(static_cast<i8*>(p.y) + (first + j) * p.pixelY + c) = out;
            }
}

} // namespace tw::ops::conv_i8
