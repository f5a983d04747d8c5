// SPDX-License-Identifier: Apache-2.0
// Slabs of any length. The first kernel leaves mean and sum of squared differences of each group in the slab; the second
// one adds slabs up, as if all had been summed around one mean, and normalizes its slab, which is still in L2 when x is
// not too large.
#pragma once

#include "ops/layer_norm/pixel_slabs.cuh"

namespace tw::ops::layer_norm {

TW_KERNEL __launch_bounds__(kThreads) measure(const __grid_constant__ PixelParams p)
{
    __shared__ float part[kRows][kColumns], sums[kGroups];
    Slab const s(p);
    Pack<T, kWidth> x[kPacks];
    float mean[kWidth], squares[kWidth]; // of the thread's channels, one after the other
#pragma unroll
    for (int j = 0; j < kWidth; ++j)
        mean[j] = squares[j] = 0;
    releaseDependents();
    waitForPrevious();
    int before = 0;
    for (int first = 0; first < s.pixels; first += kStep) {
        fetch(p, s, first, x);
        int const some = min(max(s.count() - before, 0), kPacks), all = before + some;
        float const inverse = 1 / float(max(some, 1)), share = float(some) / float(max(all, 1));
#pragma unroll
        for (int j = 0; j < kWidth; ++j) {
            float m = 0, q = 0;
            if constexpr (!kRms) {
#pragma unroll
                for (int i = 0; i < kPacks; ++i)
                    m += i < some ? load<float>(x[i].v[j]) : 0;
                m *= inverse;
            }
#pragma unroll
            for (int i = 0; i < kPacks; ++i) {
                float const d = i < some ? load<float>(x[i].v[j]) - m : 0;
                q += d * d;
            }
            float const away = m - mean[j];
            mean[j] += away * share;
            squares[j] += q + (kRms ? 0 : away * away * float(before) * share);
        }
        before = all;
    }
    float const inverse = 1 / (float(s.pixels) * kGroup);
    float own = 0; // mean of the group that this thread reports
    if constexpr (!kRms) {
        float v[kWidth];
#pragma unroll
        for (int j = 0; j < kWidth; ++j)
            v[j] = mean[j] * float(before);
        total(s, v, part, sums);
        if (threadIdx.x < kGroups)
            own = sums[threadIdx.x] * inverse;
#pragma unroll
        for (int j = 0; j < kWidth; ++j) {
            float const away = mean[j] - sums[min((s.channel - s.firstChannel + j) / kGroup, kGroups - 1)] * inverse;
            squares[j] += away * away * float(before);
        }
    }
    total(s, squares, part, sums);
    if (threadIdx.x < s.groups(p))
        static_cast<float2*>(
            p.parts)[(i64(s.image) * p.groups + s.firstChannel / kGroup + threadIdx.x) * p.slabs + s.number] =
            make_float2(own, sums[threadIdx.x]);
}
TW_KERNEL __launch_bounds__(kThreads) normalize(const __grid_constant__ PixelParams p)
{
    __shared__ float2 sets[kGroups];
    Slab const s(p);
    Pack<T, kWidth> x[kPacks];
    ChannelWeights const weights(p, s);
    releaseDependents();
    waitForPrevious();
    fetch(p, s, 0, x);
    int const lane = threadIdx.x % 32;
    float const all = float(p.n) * kGroup;
    for (int g = threadIdx.x / 32; g < s.groups(p); g += kWarps) {
        float2 const* const parts =
            static_cast<float2 const*>(p.parts) + (i64(s.image) * p.groups + s.firstChannel / kGroup + g) * p.slabs;
        auto countOf = [&](int i) { return float(min(u64(p.each), p.n - u64(i) * p.each)) * kGroup; };
        // Around the first slab's mean, so that what is taken off the squares is as small as slabs are alike.
        float const around = kRms ? 0 : parts[0].x;
        float away = 0, squares = 0;
#pragma unroll 4
        for (int i = lane; i < p.slabs; i += 32) {
            float2 const part = parts[i];
            float const count = countOf(i), d = part.x - around;
            away += count * d;
            squares += part.y + count * d * d;
        }
        away = warpReduce(away, sum);
        squares = warpReduce(squares, sum) - away * away / all;
        float const mean = around + away / all;
        if (lane == 0)
            sets[g] = make_float2(mean, scaleOf(squares < 0 ? 0 : squares, all)); // NaN stays
    }
    __syncthreads();
    float2 set[kWidth];
    ofChannels(s, sets, set);
    for (int first = 0; first < s.pixels; first += kStep) {
        if (first > 0)
            fetch(p, s, first, x);
        leave(p, s, first, x, set, weights);
    }
}

} // namespace tw::ops::layer_norm
