// SPDX-License-Identifier: Apache-2.0
// An element of y a thread, which goes through its samples.
//   type T: storage of maps and y, and what roi_align_places.cuh wants
#pragma once

#include "ops/roi_align/roi_align_places.cuh"

namespace tw::ops::roi_align {

TW_INLINE float pooled(T const* x, off w, Pixels rows, Pixels columns)
{
    float most = rows.begin < rows.end && columns.begin < columns.end ? none() : 0.0f;
    for (i32 r = rows.begin; r < rows.end; ++r)
        for (i32 s = columns.begin; s < columns.end; ++s)
            most = larger(most, load<float>(x[off(r) * w + s]));
    return most;
}

TW_INLINE float sampled(T const* x, off w, Axis const& down, Axis const& across, i32 i, i32 j)
{
    float sum = 0, most = none();
    for (i32 r = 0; r < down.samples; ++r) {
        float y;
        bool const isRow = placeOf(down, i, r, y);
        i32 const row = i32(y);
        float const wy = y - float(row);
        for (i32 s = 0; s < across.samples; ++s) {
            float place;
            if (!placeOf(across, j, s, place) || !isRow) {
                most = larger(most, 0.0f);
                continue;
            }
            i32 const column = i32(place);
            float const wx = place - float(column);
#pragma unroll
            for (int k = 0; k < 4; ++k) {
                float const weight = (k / 2 ? wy : 1 - wy) * (k % 2 ? wx : 1 - wx);
                // Behind the last row and column weights are 0.
                float part = 0;
                if (weight > 0)
                    part = weight * load<float>(x[off(row + k / 2) * w + column + k % 2]);
                sum += part;
                most = larger(most, part);
            }
        }
    }
    float const count = float(down.samples) * float(across.samples);
    return count == 0 ? 0.0f : kIsMax ? most : sum / count;
}

TW_KERNEL roi_align(const __grid_constant__ Params p)
{
    idx const e = threadIndex();
    if (e >= p.count)
        return;
    constexpr idx kBins = idx(kHeight) * idx(kWidth);
    idx const plane = e / kBins, bin = e - plane * kBins, roi = plane / idx(p.channels);
    i32 const channel = i32(plane - roi * idx(p.channels)), i = i32(bin / idx(kWidth)), j = i32(bin % idx(kWidth));
    Region const g = regionOf(p, roi);
    float v = 0;
    if (g.image >= 0) {
        i32 const h = p.h[g.level], w = p.w[g.level];
        T const* x = static_cast<T const*>(p.maps[g.level]) + (u64(g.image) * p.channels + channel) * (u64(h) * u64(w));
        Axis const down = axisOf<kHeight>(g.y, g.level, h), across = axisOf<kWidth>(g.x, g.level, w);
        if constexpr (kGrid == kPooled)
            v = pooled(x, w, pooledOf(down, i), pooledOf(across, j));
        else
            v = sampled(x, w, down, across, i, j);
    }
    static_cast<T*>(p.y)[e] = store<T>(v);
}

} // namespace tw::ops::roi_align
