// SPDX-License-Identifier: Apache-2.0
// A roi and some channels a block. Samples are mixes along both axes, so that a bin is a mix of rows that are mixes of
// pixels: the taps of all bins are found once, equal pixels taken together, and every channel is taken by them.
//   type T: storage of maps and y   int kVector: elements of a vector where maps lie by pixels, 0: maps lie in planes
//   int kChunk: channels of a block   bool kIsByPixel: y, too, lies by pixels
//   and what roi_align_places.cuh wants
// Dynamic shared memory: Bin [kHeight + kWidth], Tap [p.down + taps of columns]; T [kChunk, bins] at p.stage, where y
// has to be turned.
#pragma once

#include "ops/roi_align/roi_align_places.cuh"

namespace tw::ops::roi_align {

extern __shared__ unit16 shared[];

struct Bin
{
    i32 first = 0, count = 0; // of its taps
    bool hasSamples = false, hasZero = false;
};

struct Tap
{
    i32 at;
    float weight;   // sum, or largest
    float least[1]; // smallest
};

constexpr int kBins = kHeight * kWidth, kUnits = kVector > 0 ? kVector : 1;

// Of bin i of an axis. Where its taps begin: op.h.
TW_INLINE Bin find(Axis const& a, i32 i, Tap* taps)
{
    Bin bin;
    if constexpr (kGrid == kPooled) {
        Pixels const pixels = pooledOf(a, i);
        bin.first = pixels.begin + 2 * i;
        bin.count = max(pixels.end - pixels.begin, 0);
        bin.hasSamples = bin.count > 0;
        for (i32 t = 0; t < bin.count; ++t)
            taps[bin.first + t] = {pixels.begin + t, 1, {1}};
        return bin;
    }
    bin.first = 2 * kSamples * i;
    bin.hasSamples = a.samples > 0;
    auto const add = [&](i32 at, float weight) {
        // Samples follow each other: a pixel that was there is one of the last two.
        for (i32 t = bin.count - 1; t >= 0 && t >= bin.count - 2; --t)
            if (Tap& tap = taps[bin.first + t]; tap.at == at) {
                tap.weight = kIsMax ? fmaxf(tap.weight, weight) : tap.weight + weight;
                tap.least[0] = fminf(tap.least[0], weight);
                return;
            }
        if (kSamples == 0 && bin.count == 0)
            bin.first = at + 2 * i;
        taps[bin.first + bin.count++] = {at, weight, {weight}};
    };
    for (i32 k = 0; k < a.samples; ++k) {
        float place;
        if (!placeOf(a, i, k, place)) {
            bin.hasZero = true;
            continue;
        }
        i32 const low = i32(place);
        float const behind = place - float(low);
        add(low, 1 - behind);
        if (behind > 0)
            add(low + 1, behind);
        else
            bin.hasZero = true;
    }
    if constexpr (!kIsMax)
        for (i32 t = 0; t < bin.count; ++t)
            taps[bin.first + t].weight = __fdiv_rn(taps[bin.first + t].weight, float(a.samples));
    return bin;
}

// What a bin is before any of its taps.
TW_INLINE float beginOf(Bin const& down, Bin const& across)
{
    if constexpr (!kIsMax)
        return 0;
    return !(down.hasSamples && across.hasSamples) || down.hasZero || across.hasZero ? 0.0f : none();
}

TW_INLINE void take(float& v, float x, Tap const& row, Tap const& column)
{
    if constexpr (kIsMax)
        v = larger(v, x < 0 ? x * (row.least[0] * column.least[0]) : x * (row.weight * column.weight));
    else
        v += x * (row.weight * column.weight);
}

// Calls f(row, column) for all pixels of a bin.
template <class F>
TW_INLINE void forTaps(Bin const& down, Bin const& across, Tap const* rows, Tap const* columns, F const& f)
{
    for (i32 r = 0; r < down.count; ++r) {
        Tap const row = rows[down.first + r];
        for (i32 s = 0; s < across.count; ++s)
            f(row, columns[across.first + s]);
    }
}

TW_KERNEL roi_align_table(const __grid_constant__ Params p)
{
    Bin* bins = reinterpret_cast<Bin*>(shared);
    Tap* rows = reinterpret_cast<Tap*>(bins + kHeight + kWidth);
    Tap* columns = rows + p.down;
    u64 const roi = blockIdx.x;
    i32 const first = i32(blockIdx.y) * kChunk, here = min(kChunk, p.channels - first);
    Region const g = regionOf(p, roi);
    i32 const h = p.h[g.level], w = p.w[g.level];
    for (i32 b = threadIdx.x; b < kHeight + kWidth; b += blockDim.x) {
        bool const isRow = b < kHeight;
        Bin bin;
        if (g.image >= 0)
            bin = isRow ? find(axisOf<kHeight>(g.y, g.level, h), b, rows)
                        : find(axisOf<kWidth>(g.x, g.level, w), b - kHeight, columns);
        bins[b] = bin;
    }
    __syncthreads();
    u64 const pixels = u64(h) * u64(w), image = u64(max(g.image, 0));
    T const* map = static_cast<T const*>(p.maps[g.level]);
    T* y = static_cast<T*>(p.y);
    if constexpr (kVector == 0) {
        T const* x = map + (image * p.channels + first) * pixels;
        y += (roi * p.channels + first) * kBins;
        for (i32 e = threadIdx.x; e < here * kBins; e += blockDim.x) {
            i32 const c = e / kBins, bin = e - c * kBins;
            Bin const down = bins[bin / kWidth], across = bins[kHeight + bin % kWidth];
            T const* plane = x + u64(c) * pixels;
            float v = beginOf(down, across);
            forTaps(down, across, rows, columns, [&](Tap const& row, Tap const& column) {
                take(v, load<float>(plane[off(row.at) * off(w) + column.at]), row, column);
            });
            y[e] = store<T>(v);
        }
    } else {
        using Vector = Pack<T, kUnits>;
        constexpr i32 kGroups = kChunk / kUnits;
        T const* x = map + image * pixels * p.pixel + first;
        T* stage = reinterpret_cast<T*>(reinterpret_cast<char*>(shared) + p.stage);
        for (i32 e = threadIdx.x; e < kGroups * kBins; e += blockDim.x) {
            i32 const bin = e / kGroups, c = (e - bin * kGroups) * kUnits;
            if (c >= here)
                continue;
            Bin const down = bins[bin / kWidth], across = bins[kHeight + bin % kWidth];
            float v[kUnits];
#pragma unroll
            for (int k = 0; k < kUnits; ++k)
                v[k] = beginOf(down, across);
            forTaps(down, across, rows, columns, [&](Tap const& row, Tap const& column) {
                Vector const from =
                    *reinterpret_cast<Vector const*>(x + (off(row.at) * off(w) + column.at) * off(p.pixel) + c);
#pragma unroll
                for (int k = 0; k < kUnits; ++k)
                    take(v[k], load<float>(from.v[k]), row, column);
            });
            if constexpr (kIsByPixel) {
                Vector to;
#pragma unroll
                for (int k = 0; k < kUnits; ++k)
                    to.v[k] = store<T>(v[k]);
                *reinterpret_cast<Vector*>(y + (roi * kBins + bin) * p.yPixel + first + c) = to;
            } else {
#pragma unroll
                for (int k = 0; k < kUnits; ++k)
                    stage[(c + k) * kBins + bin] = store<T>(v[k]);
            }
        }
        if constexpr (!kIsByPixel) {
            __syncthreads();
            y += (roi * p.channels + first) * kBins;
            for (i32 e = threadIdx.x; e < here * kBins; e += blockDim.x)
                y[e] = stage[e];
        }
    }
}

} // namespace tw::ops::roi_align
