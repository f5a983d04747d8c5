// SPDX-License-Identifier: Apache-2.0
// Each thread goes down ROWS outputs of COLUMNS neighbours and V channels: what a row of x comes to is kept until the
// last window that it is part of. A block has few channels of many neighbours, which share most of what they load.
//   int SLICE: packs of neighbouring threads; int AHEAD: rows of x, loaded before the first is used; int COLUMNS; what
//   pooling_pixels.cuh wants
#pragma once

#include "ops/pooling/pooling_pixels.cuh"

namespace tw::ops::pooling {

constexpr int IN = (COLUMNS - 1) * STEP_W + S;
TW_INLINE void takeRow(T const* row, i64 pixel, bool inside, bool const (&isColumn)[IN], Unit (&v)[IN])
{
#pragma unroll
    for (int s = 0; s < IN; ++s) {
        v[s] = Joined::nothing();
        if (inside && isColumn[s])
            v[s] = *reinterpret_cast<Unit const*>(row);
        row += pixel;
    }
}
// What each of a thread's columns sees of a row.
TW_INLINE void joinRow(Unit const (&v)[IN], Joined (&to)[COLUMNS])
{
    if constexpr (COLUMNS == 2 && STEP_W == 1 && S > 1) { // most of both
        Joined both;
        both.set(v[1]);
#pragma unroll
        for (int s = 2; s < S; ++s)
            both.add(v[s]);
        to[0] = to[1] = both;
        to[0].add(v[0]);
        to[1].add(v[S]);
    } else
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) {
            to[c].set(v[c * STEP_W]);
#pragma unroll
            for (int s = 1; s < S; ++s)
                to[c].add(v[c * STEP_W + s]);
        }
}
TW_KERNEL __launch_bounds__(THREADS) pooling(const __grid_constant__ PixelsParams p)
{
    waitForPrevious();
    releaseDependents();
    idx const i = threadIndex();
    if (i >= p.count)
        return;
    idx const pixels = i / SLICE, groups = divide(pixels, p.wide), slices = divide(groups, p.groups),
              image = divide(slices, p.slices);
    idx const vector = (slices - image * idx(p.slices.d)) * SLICE + i % SLICE;
    if (vector >= p.vectors.d)
        return;
    int const c = int(vector) * V, q = int(pixels - groups * idx(p.wide.d)) * COLUMNS;
    int const o0 = int(groups - slices * idx(p.groups.d)) * ROWS, h0 = o0 * STEP_H - p.padH, w0 = q * STEP_W - p.padW;
    T const* x = static_cast<T const*>(p.x) + ((i64(image) * p.h + h0) * p.w + w0) * p.pixelX + c;
    i64 const rowX = i64(p.w) * p.pixelX;
    T* y = static_cast<T*>(p.y) + ((i64(image) * p.outH + o0) * p.outW + q) * p.pixelY + c;
    i64 const rowY = i64(p.outW) * p.pixelY;
    bool isColumn[IN];
#pragma unroll
    for (int s = 0; s < IN; ++s)
        isColumn[s] = u32(w0 + s) < u32(p.w);
    float wide[COLUMNS];
#pragma unroll
    for (int o = 0; o < COLUMNS; ++o) {
        int const start = w0 + o * STEP_W;
        wide[o] = seesAny(start, S, p.w) ? float(counted(start, S, p.w, p.afterW)) : 0.0f;
    }
    Unit v[AHEAD][IN];
    Joined seen[R][COLUMNS];
#pragma unroll
    for (int k = 0; k < AHEAD && k < SEEN; ++k) {
        takeRow(x, p.pixelX, u32(h0 + k) < u32(p.h), isColumn, v[k]);
        x += rowX;
    }
#pragma unroll
    for (int k = 0; k < SEEN; ++k) {
        joinRow(v[k % AHEAD], seen[k % R]);
        if (k + AHEAD < SEEN) {
            takeRow(x, p.pixelX, u32(h0 + k + AHEAD) < u32(p.h), isColumn, v[k % AHEAD]);
            x += rowX;
        }
        int const j = (k - R + 1) / STEP_H, start = h0 + j * STEP_H;
        if (k < R - 1 || (k - R + 1) % STEP_H != 0)
            continue;
        float const tall = seesAny(start, R, p.h) ? float(counted(start, R, p.h, p.afterH)) : 0.0f;
#pragma unroll
        for (int o = 0; o < COLUMNS; ++o) {
            Joined all = seen[0][o];
#pragma unroll
            for (int r = 1; r < R; ++r)
                all.add(seen[r][o]);
            Unit const out = all.result(tall * wide[o]);
            if (o0 + j < p.outH && (COLUMNS == 1 || q + o < p.outW))
                *reinterpret_cast<Unit*>(y + o * p.pixelY) = out;
        }
        y += rowY;
    }
}

} // namespace tw::ops::pooling
