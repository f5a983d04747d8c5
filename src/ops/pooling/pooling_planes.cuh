// SPDX-License-Identifier: Apache-2.0
// Linear images: a thread has ROWS outputs of COLUMNS columns, and the columns of x between its own and its neighbours'
// from them. After pooling_cells_pairs.cuh or _singles.cuh.
//   int R, S: the window; int STEP_H, STEP_W; int PAD_W: columns of padding before; bool EXCLUDES: padding does not
// count;
//   int ROWS, COLUMNS; int UNIT_X, UNIT_Y: elements of an access; int THREADS; what the cells want
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/pooling/pooling_params.h"

namespace tw::ops::pooling {

constexpr int SEEN = (ROWS - 1) * STEP_H + R;                         // rows of x
constexpr int IN = COLUMNS * STEP_W, WORDS = IN * int(sizeof(T)) / 4; // columns of x that are this thread's own
constexpr int BEYOND = S - STEP_W - PAD_W > 0 ? S - STEP_W - PAD_W : 0;
// Cells of the left neighbour, own, of the right neighbour.
constexpr int LEFT = (PAD_W + PER - 1) / PER, OWN = IN / PER, RIGHT = (BEYOND + PER - 1) / PER;
constexpr int CELLS = LEFT + OWN + RIGHT;
TW_INLINE u32 elementAt(T const* row, int column, int w, bool inside)
{
    if (!inside || u32(column) >= u32(w))
        return NOTHING & (sizeof(T) == 2 ? 0xFFFFu : 0xFFFFFFFFu);
    if constexpr (sizeof(T) == 2)
        return reinterpret_cast<u16 const*>(row)[column];
    else
        return reinterpret_cast<u32 const*>(row)[column];
}
TW_INLINE Cell cellAt(T const* row, int column, int w, bool inside)
{
    u32 words[1] = {elementAt(row, column, w, inside)};
    if constexpr (PER == 2)
        words[0] |= elementAt(row, column + 1, w, inside) << 16;
    return cellOf(words, 0);
}
TW_INLINE void takeRow(T const* row, int column, int w, bool inside, u32 (&words)[WORDS])
{
    if constexpr (UNIT_X * sizeof(T) == 2) {
#pragma unroll
        for (int i = 0; i < WORDS; ++i)
            words[i] = elementAt(row, column + i * 2, w, inside) | elementAt(row, column + i * 2 + 1, w, inside) << 16;
    } else {
        constexpr int N = UNIT_X * int(sizeof(T)) > 4 ? UNIT_X * int(sizeof(T)) / 4 : 1;
#pragma unroll
        for (int i = 0; i < WORDS; i += N) {
            Pack<u32, N> v;
#pragma unroll
            for (int k = 0; k < N; ++k)
                v.v[k] = NOTHING;
            int const from = column + i * 4 / int(sizeof(T));
            if (inside && from < w)
                v = *reinterpret_cast<Pack<u32, N> const*>(row + from);
#pragma unroll
            for (int k = 0; k < N; ++k)
                words[i + k] = v.v[k];
        }
    }
}
// 1 over the positions of a window along one axis that count for the average; 0 where it sees none.
TW_INLINE float shareOf(int start, int window, int in, int after)
{
    int const stop = start + window, seen = min(stop, in) - max(start, 0);
    int const count = EXCLUDES ? seen : min(stop, in + after) - start;
    float by;
    asm("rcp.approx.f32 %0, %1;" : "=f"(by) : "f"(float(count)));
    return seen > 0 ? by : 0.0f;
}
TW_KERNEL __launch_bounds__(THREADS) pooling(const __grid_constant__ PlanesParams p)
{
    waitForPrevious();
    releaseDependents();
    // Threads without work repeat the last one's: whole warps exchange.
    bool const works = threadIndex() < p.count;
    idx const i = works ? threadIndex() : idx(p.count) - 1;
    idx const groups = divide(i, p.wide), plane = divide(groups, p.groups);
    int const part = int(i - groups * idx(p.wide.d)), q0 = part * COLUMNS, w0 = part * IN;
    int const o0 = int(groups - plane * idx(p.groups.d)) * ROWS, h0 = o0 * STEP_H - p.padH;
    T const* const x = static_cast<T const*>(p.x) + i64(plane) * p.h * p.w;
    int const lane = threadIdx.x & 31;
    bool const isFirst = part == 0, isLast = part + 1 == int(p.wide.d);
    bool const takesLeft = !isFirst && lane == 0, takesRight = isLast || lane == 31;
    Cell all[ROWS][CELLS];
#pragma unroll
    for (int j = 0; j < ROWS; ++j)
#pragma unroll
        for (int c = 0; c < CELLS; ++c)
            all[j][c] = none();
    // Loads of AHEAD rows go out before the first is used.
    constexpr int FIT = 40 / (WORDS + LEFT + RIGHT), AHEAD = FIT >= SEEN ? SEEN : FIT > 1 ? FIT : 1;
#pragma unroll
    for (int r0 = 0; r0 < SEEN; r0 += AHEAD) {
        u32 words[AHEAD][WORDS];
        Cell left[AHEAD][LEFT + 1], right[AHEAD][RIGHT + 1];
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
            int const h = h0 + r0 + k;
            bool const inside = u32(h) < u32(p.h) && r0 + k < SEEN;
            T const* const row = x + i64(h) * p.w;
            takeRow(row, w0, p.w, inside, words[k]);
#pragma unroll
            for (int c = 0; c < LEFT; ++c)
                left[k][c] = cellAt(row, w0 - (LEFT - c) * PER, p.w, inside && takesLeft);
#pragma unroll
            for (int c = 0; c < RIGHT; ++c)
                right[k][c] = cellAt(row, w0 + IN + c * PER, p.w, inside && takesRight);
        }
#pragma unroll
        for (int k = 0; k < AHEAD; ++k)
#pragma unroll
            for (int j = 0; j < ROWS; ++j)
                if (r0 + k >= j * STEP_H && r0 + k < j * STEP_H + R) {
#pragma unroll
                    for (int c = 0; c < LEFT; ++c)
                        all[j][c] = join(all[j][c], left[k][c]);
#pragma unroll
                    for (int c = 0; c < OWN; ++c)
                        all[j][LEFT + c] = join(all[j][LEFT + c], cellOf(words[k], c));
#pragma unroll
                    for (int c = 0; c < RIGHT; ++c)
                        all[j][LEFT + OWN + c] = join(all[j][LEFT + OWN + c], right[k][c]);
                }
    }
#pragma unroll
    for (int j = 0; j < ROWS; ++j) {
        Cell fromLeft[LEFT + 1], fromRight[RIGHT + 1];
#pragma unroll
        for (int c = 0; c < LEFT; ++c)
            fromLeft[c] = __shfl_up_sync(0xffffffffu, all[j][OWN + c], 1);
#pragma unroll
        for (int c = 0; c < RIGHT; ++c)
            fromRight[c] = __shfl_down_sync(0xffffffffu, all[j][LEFT + c], 1);
#pragma unroll
        for (int c = 0; c < LEFT; ++c)
            if (!isFirst && !takesLeft)
                all[j][c] = fromLeft[c];
#pragma unroll
        for (int c = 0; c < RIGHT; ++c)
            if (!takesRight)
                all[j][LEFT + OWN + c] = fromRight[c];
    }
    if (!works)
        return;
    float byW[COLUMNS] = {};
#pragma unroll
    for (int o = 0; o < COLUMNS; ++o)
        if (AVERAGES)
            byW[o] = shareOf((q0 + o) * STEP_W - PAD_W, S, p.w, p.afterW);
    T* const y = static_cast<T*>(p.y) + (i64(plane) * p.outH + o0) * p.outW + q0;
#pragma unroll
    for (int j = 0; j < ROWS; ++j) {
        if (o0 + j >= p.outH)
            break;
        float const byH = AVERAGES ? shareOf(h0 + j * STEP_H, R, p.h, p.afterH) : 0.0f;
        Pack<T, COLUMNS> out;
#pragma unroll
        for (int o = 0; o < COLUMNS; o += PER) {
            constexpr int FIRST = LEFT * PER - PAD_W;
            Cell v = pick(all[j], FIRST + o * STEP_W, FIRST + o * STEP_W + (PER - 1) * STEP_W);
#pragma unroll
            for (int s = 1; s < S; ++s)
                v = join(v, pick(all[j], FIRST + o * STEP_W + s, FIRST + o * STEP_W + s + (PER - 1) * STEP_W));
            put(out, o, v, byH, byW[o]);
        }
#pragma unroll
        for (int o = 0; o < COLUMNS; o += UNIT_Y)
            if (q0 + o < p.outW) {
                Pack<T, UNIT_Y> part;
#pragma unroll
                for (int k = 0; k < UNIT_Y; ++k)
                    part.v[k] = out.v[o + k];
                *reinterpret_cast<Pack<T, UNIT_Y>*>(y + i64(j) * p.outW + o) = part;
            }
    }
}

} // namespace tw::ops::pooling
