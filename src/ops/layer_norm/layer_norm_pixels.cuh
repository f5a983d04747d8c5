// SPDX-License-Identifier: Apache-2.0
// Groups of neighbouring channels over all pixels of an image. A block has a slab of pixels and a segment of channels,
// whole groups: kLanes threads side by side for kWidth channels each, kRows of them for neighbouring pixels, kPacks pixels
// of a thread at a time, as often as the slab is long. The first kernel leaves mean and sum of squared differences of each
// group in the slab; the second one adds slabs up, as if all had been summed around one mean, and normalizes its slab,
// which is still in L2 when x is not too large.
//   int kThreads, kLanes, kWidth, kPacks; kSegment: channels; kGroup: channels of a group
#pragma once

#include "ops/layer_norm/layer_norm.cuh"

namespace tw::ops::layer_norm {

constexpr int kRows = kThreads / kLanes, kGroups = kSegment / kGroup, kWarps = kThreads / 32, kStep = kRows * kPacks;

struct Slab
{
    int image, number, firstChannel, channel, row, pixels; // channel: the thread's first; pixels: of the slab
    bool takesPart;
    TW_INLINE Slab(PixelParams const& p)
    {
        int const block = blockIdx.x / p.segments;
        image = block / p.slabs;
        number = block - image * p.slabs;
        firstChannel = (blockIdx.x - block * p.segments) * kSegment;
        row = threadIdx.x / kLanes;
        channel = firstChannel + threadIdx.x % kLanes * kWidth;
        pixels = int(min(u64(p.each), p.n - u64(number) * p.each));
        takesPart = row < kRows && channel < p.channels && threadIdx.x % kLanes * kWidth < kSegment;
    }
    // The thread's pixel i of those from `first` on.
    TW_INLINE bool has(int first, int i) const { return takesPart && first + row + i * kRows < pixels; }
    TW_INLINE i64 pixel(PixelParams const& p, int first, int i) const
    {
        return i64(image) * p.n + i64(number) * p.each + first + row + i * kRows;
    }
    // How many the thread has in the slab.
    TW_INLINE int count() const { return takesPart && row < pixels ? (pixels - row - 1) / kRows + 1 : 0; }
    // Groups of the segment that exist.
    TW_INLINE int groups(PixelParams const& p) const { return min(kGroups, p.groups - firstChannel / kGroup); }
};
TW_INLINE void fetch(PixelParams const& p, Slab const& s, int first, Pack<T, kWidth> (&x)[kPacks])
{
#pragma unroll
    for (int i = 0; i < kPacks; ++i)
        if (s.has(first, i))
            x[i] = *reinterpret_cast<Pack<T, kWidth> const*>(static_cast<T const*>(p.x) +
                                                             s.pixel(p, first, i) * p.xPitch + s.channel);
}
// Sums of groups, in out[], out of those of the threads' channels.
TW_INLINE void total(Slab const& s, float const (&v)[kWidth], float (&part)[kRows][kLanes * kWidth], float* out)
{
    __syncthreads();
    if (s.row < kRows)
#pragma unroll
        for (int j = 0; j < kWidth; ++j)
            part[s.row][threadIdx.x % kLanes * kWidth + j] = v[j];
    __syncthreads();
    for (int c = threadIdx.x; c < kSegment; c += kThreads) {
        float sum = part[0][c];
#pragma unroll
        for (int r = 1; r < kRows; ++r)
            sum += part[r][c];
        part[0][c] = sum;
    }
    __syncthreads();
    for (int g = threadIdx.x; g < kGroups; g += kThreads) {
        float sum = 0;
#pragma unroll 8
        for (int c = 0; c < kGroup; ++c)
            sum += part[0][g * kGroup + c];
        out[g] = sum;
    }
    __syncthreads();
}
TW_KERNEL __launch_bounds__(kThreads) measure(const __grid_constant__ PixelParams p)
{
    __shared__ float part[kRows][kLanes * kWidth], sums[kGroups];
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
    Pack<T, kWidth> x[kPacks], gammas, betas;
    if (s.takesPart)
#pragma unroll
        for (int j = 0; j < kWidth; ++j)
            if (s.channel + j < p.channels) {
                if constexpr (kGamma)
                    gammas.v[j] = static_cast<T const*>(p.gamma)[s.channel + j];
                if constexpr (kBeta)
                    betas.v[j] = static_cast<T const*>(p.beta)[s.channel + j];
            }
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
#pragma unroll
    for (int j = 0; j < kWidth; ++j)
        set[j] = sets[min((s.channel - s.firstChannel + j) / kGroup, kGroups - 1)];
    for (int first = 0; first < s.pixels; first += kStep) {
        if (first > 0)
            fetch(p, s, first, x);
#pragma unroll
        for (int i = 0; i < kPacks; ++i)
            if (s.has(first, i)) {
                Pack<T, kWidth> y;
#pragma unroll
                for (int j = 0; j < kWidth; ++j)
                    y.v[j] = finished((load<float>(x[i].v[j]) - set[j].x) * set[j].y, load<float>(gammas.v[j]),
                                      load<float>(betas.v[j]));
                *reinterpret_cast<Pack<T, kWidth>*>(static_cast<T*>(p.y) + s.pixel(p, first, i) * p.yPitch +
                                                    s.channel) = y;
            }
    }
}

} // namespace tw::ops::layer_norm
