// SPDX-License-Identifier: Apache-2.0
// A block copies the rows of x that a band of y needs, which lie together in memory, to shared memory in packs wherever
// they begin; a thread goes down ROWS outputs of COLUMNS columns and keeps what R rows of x have come to; y leaves
// through shared memory as x came. After pooling_cells_pairs.cuh or _singles.cuh.
//   int R, S: the window; int STEP_H, STEP_W; int PAD_W: columns of padding before; int W, OUT_W: columns of x and y;
// bool
//   EXCLUDES: padding does not count; int ROWS, COLUMNS; int GROUPS: of ROWS rows, of a band; int PLANES: of a block,
// where
//   a band is a plane; int THREADS; int WORDS_X, WORDS_Y: of shared memory; what the cells want
#pragma once

#include "kernels/cuda/common/async_copies.cuh"
#include "kernels/cuda/common/prelude.cuh"
#include "ops/pooling/pooling_params.h"

namespace tw::ops::pooling {

constexpr int BAND = ROWS * GROUPS, WIDE = (OUT_W + COLUMNS - 1) / COLUMNS, UNITS = WIDE * GROUPS * PLANES;
constexpr int SIZE = sizeof(T), SIDE = 4 / SIZE, V = 16 / SIZE,
              LINE = 128 / SIZE; // elements of a word, a pack, 128 bytes
// Words of a row that a thread reads: left of its own columns, those, right of them.
constexpr int IN = COLUMNS * STEP_W, BEYOND = S - STEP_W - PAD_W > 0 ? S - STEP_W - PAD_W : 0;
constexpr int LEFT = (PAD_W + SIDE - 1) / SIDE, OWN = IN / SIDE, RIGHT = (BEYOND + SIDE - 1) / SIDE;
constexpr int WORDS = LEFT + OWN + RIGHT, CELLS = WORDS * SIDE / PER, SLOTS = COLUMNS / PER;
constexpr bool ODD = W % SIDE != 0; // rows may begin within a word
// Elements of an access to shared memory: a power of two.
__device__ constexpr int lowestBit(int v)
{
    return v & -v;
}
constexpr int UNIT_X = lowestBit(W | IN | V), UNIT_Y = lowestBit(OUT_W | COLUMNS | V),
              OWN_WORDS = UNIT_X < SIDE ? 1 : UNIT_X / SIDE;
constexpr int FRONT = LINE; // elements of shared memory before those of x
// 1 over the positions of a window along one axis that count for the average; 0 where it sees none.
TW_INLINE float shareOf(int start, int window, int in, int after)
{
    int const stop = start + window, seen = min(stop, in) - max(start, 0);
    int const count = EXCLUDES ? seen : min(stop, in + after) - start;
    float by;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(by) : "f"(float(count)));
    return seen > 0 ? by : 0.0f;
}
TW_INLINE void takeRow(u32 const* at, int shift, u32 (&words)[WORDS])
{
    if constexpr (ODD) {
        constexpr int NEED = (LEFT * 2 + IN + BEYOND + 2) / 2;
        u32 raw[WORDS + 1];
#pragma unroll
        for (int c = 0; c <= WORDS; ++c)
            raw[c] = c < NEED ? at[c] : 0;
#pragma unroll
        for (int c = 0; c < WORDS; ++c)
            words[c] = __funnelshift_r(raw[c], raw[c + 1], shift);
    } else {
#pragma unroll
        for (int c = 0; c < LEFT; ++c)
            words[c] = at[c];
#pragma unroll
        for (int c = 0; c < OWN; c += OWN_WORDS) {
            Pack<u32, OWN_WORDS> const v = *reinterpret_cast<Pack<u32, OWN_WORDS> const*>(at + LEFT + c);
#pragma unroll
            for (int k = 0; k < OWN_WORDS; ++k)
                words[LEFT + c + k] = v.v[k];
        }
#pragma unroll
        for (int c = 0; c < RIGHT; ++c)
            words[LEFT + OWN + c] = at[LEFT + OWN + c];
    }
}
TW_INLINE void putRow(T* to, int q, Cell const (&v)[SLOTS])
{
    u32 words[COLUMNS / SIDE];
#pragma unroll
    for (int o = 0; o < COLUMNS; o += SIDE)
        words[o / SIDE] = wordOf(v[o / PER], v[o / PER + (PER == 1 ? SIDE - 1 : 0)]);
#pragma unroll
    for (int o = 0; o < COLUMNS; o += UNIT_Y) {
        if (OUT_W % COLUMNS != 0 && q + o >= OUT_W)
            break;
        if constexpr (UNIT_Y < SIDE)
            reinterpret_cast<u16*>(to)[o] = u16(words[o / 2] >> o % 2 * 16);
        else {
            constexpr int N = UNIT_Y < SIDE ? 1 : UNIT_Y / SIDE;
            Pack<u32, N> part;
#pragma unroll
            for (int k = 0; k < N; ++k)
                part.v[k] = words[o / SIDE + k];
            *reinterpret_cast<Pack<u32, N>*>(to + o) = part;
        }
    }
}
TW_KERNEL __launch_bounds__(THREADS) pooling(const __grid_constant__ BandsParams p)
{
    __shared__ alignas(128) u32 data[WORDS_X];
    __shared__ alignas(128) u32 staged[WORDS_Y];
    __shared__ float shares[BAND];
    waitForPrevious();
    releaseDependents();
    int const group = int(divide(blockIdx.x, p.bands)), band = int(blockIdx.x) - group * int(p.bands.d);
    int const plane0 = group * PLANES, planes = min(PLANES, p.planes - plane0), o0 = band * BAND;
    // Of x rows [h0, stop), of all planes where there are several; of y rows from o0 on.
    int const h0 = PLANES > 1 ? 0 : max(o0 * STEP_H - p.padH, 0);
    int const stop = PLANES > 1 ? p.h : min((o0 + BAND - 1) * STEP_H - p.padH + R, p.h);
    int const firstX = (plane0 * p.h + h0) * W, shiftX = firstX & (LINE - 1), x0 = firstX - shiftX;
    int const elements = shiftX + (PLANES > 1 ? planes * p.h : stop - h0) * W;
    T const* const x = static_cast<T const*>(p.x) + x0;
    T* const in = reinterpret_cast<T*>(data) + FRONT;
    // What lies after x is not read: packs up to there, then elements. Lines stay lines in shared memory: a copy of 32
    // bytes that ends in two of them reads memory twice.
    int const whole = u64(x0) + u32(elements + V - 1) <= p.countX ? elements : int((p.countX - x0) / V) * V;
    u32 const to = sharedAddress(in);
#pragma unroll 4
    for (int k = threadIdx.x * V; k < whole; k += THREADS * V)
        if (k + V > shiftX)
            copyAsync16(to + k * SIZE, x + k, true);
    copyCommit();
    if (whole < elements)
#pragma unroll 1
        for (int k = whole + threadIdx.x; k < elements; k += THREADS)
            in[k] = x[k];
    if (AVERAGES)
#pragma unroll 1
        for (int i = threadIdx.x; i < BAND; i += THREADS)
            shares[i] = shareOf((o0 + i) * STEP_H - p.padH, R, p.h, p.afterH);
    int const firstY = (plane0 * p.outH + o0) * OUT_W, shiftY = firstY & (LINE - 1);
    int const rowsY = PLANES > 1 ? planes * p.outH : min(BAND, p.outH - o0);
    int const unit = threadIdx.x, q = unit % WIDE * COLUMNS, plane = unit / WIDE % PLANES,
              o = unit / (WIDE * PLANES) * ROWS;
    int const w = q * STEP_W - LEFT * SIDE; // column of the first word
    // Parts of words that lie outside of x.
    u32 mask[WORDS];
    bool isEdge[WORDS];
#pragma unroll
    for (int c = 0; c < WORDS; ++c) {
        int const column = w + c * SIDE;
        isEdge[c] = c < LEFT || (WIDE - 1) * IN + (c - LEFT + 1) * SIDE > W;
        mask[c] = (u32(column) < W ? 0xFFFFu : 0) | (u32(column + SIDE - 1) < W ? 0xFFFF0000u : 0);
    }
    float byW[COLUMNS] = {};
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i)
        if (AVERAGES)
            byW[i] = shareOf((q + i) * STEP_W - PAD_W, S, W, p.afterW);
    copyWait<0>();
    __syncthreads();
    int const rows = min(ROWS, p.outH - o0 - o);
    if (unit < UNITS && plane < planes && rows > 0) {
        int const h = (o0 + o) * STEP_H - p.padH, place = FRONT + shiftX + (plane * p.h + h - h0) * W + w;
        T* const row = reinterpret_cast<T*>(staged) + shiftY + (plane * p.outH + o) * OUT_W + q;
        // Of even and of odd rows of the strip.
        u32 const *const even = data + (place >> (SIDE - 1)), *const odd = data + ((place + W) >> (SIDE - 1));
        Cell seen[R][SLOTS];
#pragma unroll
        for (int k = 0; k < (ROWS - 1) * STEP_H + R; ++k) {
            if (k % STEP_H >= R)
                continue;
            u32 words[WORDS];
            if (u32(h + k) < u32(p.h))
                takeRow(ODD && k % 2 ? odd + (k - 1) * W / SIDE : even + k * W / SIDE, ((place + k * W) & 1) * 16,
                        words);
            else
#pragma unroll
                for (int c = 0; c < WORDS; ++c)
                    words[c] = NOTHING;
            Cell cells[CELLS];
#pragma unroll
            for (int c = 0; c < WORDS; ++c)
                if (isEdge[c])
                    words[c] = (words[c] & mask[c]) | (NOTHING & ~mask[c]);
#pragma unroll
            for (int c = 0; c < CELLS; ++c)
                cells[c] = cellOf(words, c);
#pragma unroll
            for (int i = 0; i < SLOTS; ++i) {
                constexpr int FIRST = LEFT * SIDE - PAD_W;
                int const at = FIRST + i * PER * STEP_W;
                Cell v = pick(cells, at, at + STEP_W);
#pragma unroll
                for (int s = 1; s < S; ++s)
                    v = join(v, pick(cells, at + s, at + s + STEP_W));
                seen[k % R][i] = v;
            }
            int const j = (k - R + 1) / STEP_H;
            if (k < R - 1 || (k - R + 1) % STEP_H != 0)
                continue;
            Cell all[SLOTS];
            float const byH = AVERAGES ? shares[o + j] : 0.0f;
#pragma unroll
            for (int i = 0; i < SLOTS; ++i) {
                all[i] = seen[0][i];
#pragma unroll
                for (int r = 1; r < R; ++r)
                    all[i] = join(all[i], seen[r][i]);
                if constexpr (AVERAGES)
                    all[i] *= byH * byW[i];
            }
            if (j < rows)
                putRow(row + j * OUT_W, q, all);
        }
    }
    __syncthreads();
    T* const y = static_cast<T*>(p.y) + (firstY - shiftY);
    T const* const out = reinterpret_cast<T const*>(staged);
    int const end = shiftY + rowsY * OUT_W, begin = (shiftY + V - 1) / V * V, last = end / V * V;
#pragma unroll 4
    for (int k = threadIdx.x * V; k < last; k += THREADS * V)
        if (k >= begin)
            *reinterpret_cast<Pack<u32, 4>*>(y + k) = *reinterpret_cast<Pack<u32, 4> const*>(out + k);
    if (threadIdx.x < V) { // before the first pack and after the last one
        int const k = shiftY + threadIdx.x, behind = max(last, begin) + threadIdx.x;
        if (k < min(begin, end))
            y[k] = out[k];
        if (behind < end)
            y[behind] = out[behind];
    }
}

} // namespace tw::ops::pooling
