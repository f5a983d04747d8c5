// SPDX-License-Identifier: Apache-2.0
// Groups of neighbouring channels over all pixels of an image. A block has a slab of pixels and a segment of channels,
// whole groups: kLanes threads side by side for kWidth channels each, kRows of them for neighbouring pixels, kPacks pixels
// of a thread at a time.
//   int kThreads, kLanes, kWidth, kPacks; kSegment: channels; kGroup: channels of a group
//   bool kSlabsAreNeighbours: blocks of one image and segment are (of a cluster); else segments of one slab
#pragma once

#include "ops/layer_norm/layer_norm.cuh"

namespace tw::ops::layer_norm {

constexpr int kRows = kThreads / kLanes, kGroups = kSegment / kGroup, kWarps = kThreads / 32, kStep = kRows * kPacks;
constexpr int kColumns = kLanes * kWidth;
constexpr int kTeams = kThreads / kColumns < 1 ? 1 : kThreads / kColumns > 16 ? 16 : kThreads / kColumns;

struct Slab
{
    int image, number, firstChannel, channel, row, pixels; // channel: the thread's first; pixels: of the slab
    bool takesPart;
    TW_INLINE Slab(PixelParams const& p)
    {
        int const inner = kSlabsAreNeighbours ? p.slabs : p.segments,
                  outer = kSlabsAreNeighbours ? p.segments : p.slabs;
        int const block = blockIdx.x / inner, a = blockIdx.x - block * inner;
        image = block / outer;
        int const b = block - image * outer;
        number = kSlabsAreNeighbours ? a : b;
        firstChannel = (kSlabsAreNeighbours ? b : a) * kSegment;
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
// Sums of groups, in out[], out of those of the threads' channels: of kTeams threads for a channel, then of a thread or a
// warp for a group.
TW_INLINE void total(Slab const& s, float const (&v)[kWidth], float (&part)[kRows][kColumns], float* out)
{
    __syncthreads();
    if (s.row < kRows)
#pragma unroll
        for (int j = 0; j < kWidth; ++j)
            part[s.row][threadIdx.x % kLanes * kWidth + j] = v[j];
    __syncthreads();
    for (int i = threadIdx.x; i < kTeams * kColumns; i += kThreads) {
        int const team = i / kColumns, c = i % kColumns;
        float sum = 0;
#pragma unroll 8
        for (int r = team; r < kRows; r += kTeams)
            sum += part[r][c];
        if (team < kRows)
            part[team][c] = sum;
    }
    __syncthreads();
    constexpr int kLeft = kTeams < kRows ? kTeams : kRows, kEach = kGroup * kLeft; // numbers of a group
    auto at = [&](int g, int i) { return part[i / kGroup][g * kGroup + i % kGroup]; };
    if constexpr (kEach <= 32) {
        for (int g = threadIdx.x; g < kGroups; g += kThreads) {
            float sum = 0;
#pragma unroll
            for (int i = 0; i < kEach; ++i)
                sum += at(g, i);
            out[g] = sum;
        }
    } else {
        for (int g = threadIdx.x / 32; g < kGroups; g += kWarps) {
            float all = 0;
            for (int i = threadIdx.x % 32; i < kEach; i += 32)
                all += at(g, i);
            all = warpReduce(all, sum);
            if (threadIdx.x % 32 == 0)
                out[g] = all;
        }
    }
    __syncthreads();
}
// Gamma and beta of the thread's channels.
struct ChannelWeights
{
    Pack<T, kWidth> gammas, betas;
    TW_INLINE ChannelWeights(PixelParams const& p, Slab const& s)
    {
        if (s.takesPart)
#pragma unroll
            for (int j = 0; j < kWidth; ++j)
                if (s.channel + j < p.channels) {
                    if constexpr (kGamma)
                        gammas.v[j] = static_cast<T const*>(p.gamma)[s.channel + j];
                    if constexpr (kBeta)
                        betas.v[j] = static_cast<T const*>(p.beta)[s.channel + j];
                }
    }
};
// The thread's pixels of those from `first` on, normalized by mean and factor of their groups.
TW_INLINE void leave(PixelParams const& p, Slab const& s, int first, Pack<T, kWidth> const (&x)[kPacks],
                     float2 const (&set)[kWidth], ChannelWeights const& w)
{
#pragma unroll
    for (int i = 0; i < kPacks; ++i)
        if (s.has(first, i)) {
            Pack<T, kWidth> y;
#pragma unroll
            for (int j = 0; j < kWidth; ++j)
                y.v[j] = finished((load<float>(x[i].v[j]) - set[j].x) * set[j].y, load<float>(w.gammas.v[j]),
                                  load<float>(w.betas.v[j]));
            *reinterpret_cast<Pack<T, kWidth>*>(static_cast<T*>(p.y) + s.pixel(p, first, i) * p.yPitch + s.channel) = y;
        }
}
// Of the thread's channels, what their groups have.
TW_INLINE void ofChannels(Slab const& s, float2 const* sets, float2 (&set)[kWidth])
{
#pragma unroll
    for (int j = 0; j < kWidth; ++j)
        set[j] = sets[min((s.channel - s.firstChannel + j) / kGroup, kGroups - 1)];
}

} // namespace tw::ops::layer_norm
