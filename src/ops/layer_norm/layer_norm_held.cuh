// SPDX-License-Identifier: Apache-2.0
// Slabs of kPacks pixels a thread, which stay in registers: x is read once. The blocks of an image's segment are a
// cluster, which tell each other mean and sum of squared differences of each group in their slab.
//   int kMostSlabs
#pragma once

#include "kernels/cuda/common/async_copies.cuh"
#include "kernels/cuda/common/clusters.cuh"
#include "ops/layer_norm/pixel_slabs.cuh"

namespace tw::ops::layer_norm {

TW_KERNEL __launch_bounds__(kThreads) layer_norm(const __grid_constant__ PixelParams p)
{
    __shared__ float part[kRows][kColumns], sums[kGroups];
    __shared__ float2 parts[kMostSlabs][kGroups], sets[kGroups];
    Slab const s(p);
    bool const several = p.slabs > 1;
    if (several)
        clusterArrive();
    ChannelWeights const weights(p, s);
    Pack<T, kWidth> x[kPacks];
    float v[kWidth];
    float2 set[kWidth];
    releaseDependents();
    waitForPrevious();
    fetch(p, s, 0, x);
    float const inverse = 1 / (float(s.pixels) * kGroup);
    if constexpr (!kRms) {
#pragma unroll
        for (int j = 0; j < kWidth; ++j) {
            v[j] = 0;
#pragma unroll
            for (int i = 0; i < kPacks; ++i)
                v[j] += s.has(0, i) ? load<float>(x[i].v[j]) : 0;
        }
        total(s, v, part, sums);
        if (threadIdx.x < kGroups)
            sets[threadIdx.x].x = sums[threadIdx.x] * inverse;
        __syncthreads();
        ofChannels(s, sets, set);
    }
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
        v[j] = 0;
#pragma unroll
        for (int i = 0; i < kPacks; ++i) {
            float const away = s.has(0, i) ? load<float>(x[i].v[j]) - (kRms ? 0 : set[j].x) : 0;
            v[j] += away * away;
        }
    }
    total(s, v, part, sums);
    if (several)
        clusterWait(); // all have begun
    int const g = threadIdx.x;
    if (several && g < kGroups)
        for (int to = 0; to < p.slabs; ++to)
            storeCluster(addressAt(sharedAddress(&parts[s.number][g]), to), kRms ? 0 : sets[g].x, sums[g]);
    if (several)
        clusterSync();
    if (g < kGroups) {
        float const all = float(p.n) * kGroup;
        float mean = kRms ? 0 : sets[g].x, squares = sums[g];
        if (several) {
            auto countOf = [&](int i) { return float(min(u64(p.each), p.n - u64(i) * p.each)) * kGroup; };
            // Around the first slab's mean, so that what is taken off the squares is as small as slabs are alike.
            float const around = parts[0][g].x;
            float away = 0;
            squares = 0;
            for (int i = 0; i < p.slabs; ++i) {
                float const count = countOf(i), d = parts[i][g].x - around;
                away += count * d;
                squares += parts[i][g].y + count * d * d;
            }
            squares -= away * away / all;
            mean = around + away / all;
        }
        sets[g] = make_float2(mean, scaleOf(squares < 0 ? 0 : squares, all)); // NaN stays
    }
    __syncthreads();
    ofChannels(s, sets, set);
    leave(p, s, 0, x, set, weights);
}

} // namespace tw::ops::layer_norm
