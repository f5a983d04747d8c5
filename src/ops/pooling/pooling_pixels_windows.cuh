// SPDX-License-Identifier: Apache-2.0
// Each thread has V channels of ROWS outputs, one below the other: windows that overlap share what it loads.
//   bool UNROLLS: a thread sees few positions; what pooling_pixels.cuh wants
#pragma once

#include "ops/pooling/pooling_pixels.cuh"

namespace tw::ops::pooling {

TW_KERNEL __launch_bounds__(THREADS) pooling(const __grid_constant__ PixelsParams p)
{
    waitForPrevious();
    releaseDependents();
    idx const i = threadIndex();
    if (i >= p.count)
        return;
    idx const pixels = divide(i, p.vectors), groups = divide(pixels, p.wide), image = divide(groups, p.groups);
    int const c = int(i - pixels * idx(p.vectors.d)) * V, q = int(pixels - groups * idx(p.wide.d));
    int const o0 = int(groups - image * idx(p.groups.d)) * ROWS, h0 = o0 * STEP_H - p.padH, w0 = q * STEP_W - p.padW;
    T const* const x = static_cast<T const*>(p.x) + i64(image) * p.h * p.w * p.pixelX + c;
    Joined all[ROWS];
#pragma unroll
    for (int j = 0; j < ROWS; ++j)
        all[j].set(Joined::nothing());
    // Loads of AHEAD rows go out before the first is used; all turns are unrolled, or none.
    constexpr int AHEAD = SEEN * S <= 16 ? SEEN : 2 * S <= 16 ? 2 : 1;
    constexpr int AT_ONCE = UNROLLS ? SEEN : AHEAD;
#pragma unroll 1
    for (int first = 0; first < SEEN; first += AT_ONCE)
#pragma unroll
        for (int r0 = first; r0 < first + AT_ONCE; r0 += AHEAD) {
            Unit v[AHEAD][S];
#pragma unroll
            for (int k = 0; k < AHEAD; ++k) {
                int const h = h0 + r0 + k;
                bool const inside = u32(h) < u32(p.h) && r0 + k < SEEN;
                T const* const row = x + i64(h) * p.w * p.pixelX;
#pragma unroll
                for (int s = 0; s < S; ++s) {
                    v[k][s] = Joined::nothing();
                    if (inside && u32(w0 + s) < u32(p.w))
                        v[k][s] = *reinterpret_cast<Unit const*>(row + i64(w0 + s) * p.pixelX);
                }
            }
#pragma unroll
            for (int k = 0; k < AHEAD; ++k) {
                Joined joined;
                joined.set(v[k][0]);
#pragma unroll
                for (int s = 1; s < S; ++s)
                    joined.add(v[k][s]);
#pragma unroll
                for (int j = 0; j < ROWS; ++j)
                    if (r0 + k >= j * STEP_H && r0 + k < j * STEP_H + R)
                        all[j].add(joined);
            }
        }
#pragma unroll
    for (int j = 0; j < ROWS; ++j) {
        if (o0 + j >= p.outH)
            break;
        int const start = h0 + j * STEP_H;
        bool const any = seesAny(start, R, p.h) && seesAny(w0, S, p.w);
        float const count = any ? float(counted(start, R, p.h, p.afterH)) * float(counted(w0, S, p.w, p.afterW)) : 0.0f;
        i64 const to = ((i64(image) * p.outH + o0 + j) * i64(p.wide.d) + q) * p.pixelY + c;
        auto const out = all[j].result(count);
        *reinterpret_cast<Unit*>(static_cast<T*>(p.y) + to) = *reinterpret_cast<Unit const*>(&out);
    }
}

} // namespace tw::ops::pooling
