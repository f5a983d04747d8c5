// SPDX-License-Identifier: Apache-2.0
// Products of few rows that are normalized first. Gamma and beta are in b and its bias, so that
//   ((a - mean) scale) b = (a b - mean sums) scale   with scale = 1 / sqrt(variance + epsilon), sums[n]: of b's column n.
// b's columns are multiplied as they are, while warps of their own, behind the one that copies, read the rows from
// global memory, twice: means first, then squared differences from them, since sums of squares alone lose what rows have
// that lie far from 0.
//   int FIRST_NORM: 0: there is none, 1: LayerNorm, 2: the mean counts as 0; FIRST_WARPS
#pragma once

#include "kernels/cuda/gemm/wgmma_tiles.cuh"

namespace tw::cuda::gemm_f16 {

constexpr int FIRST_BARRIER = 6; // bar.sync's: of these warps and of those that multiply

// The sum over a row of f(number), for all lanes: each takes units of 16 bytes, eight of them on their way at once, and adds
// to eight sums, so that none waits for another.
template <class F>
TW_INLINE float sumOfRow(Unit const* row, int units, int lane, F f)
{
    constexpr int AT_ONCE = 8;
    float part[8] = {};
#pragma unroll 1
    for (int first = lane; first < units; first += 32 * AT_ONCE) {
        Unit x[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i)
            if (first + i * 32 < units)
                x[i] = row[first + i * 32];
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i)
            if (first + i * 32 < units)
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    part[e * 2] += f(lowHalf(x[i].v[e]));
                    part[e * 2 + 1] += f(highHalf(x[i].v[e]));
                }
    }
#pragma unroll
    for (int step = 4; step > 0; step /= 2)
#pragma unroll
        for (int e = 0; e < step; ++e)
            part[e] += part[e + step];
#pragma unroll
    for (int d = 16; d > 0; d /= 2)
        part[0] += __shfl_xor_sync(~0u, part[0], d);
    return part[0];
}
// Mean and scale of rows first .. first + count, as far as there are such, to shared memory: a warp for each, in turn.
TW_INLINE void measureRows(FirstNorm const& p, u32 to, int first, int count, int warp, int lane)
{
    waitForPrevious();
    int const end = min(first + count, p.rows), units = p.k / 8;
    for (int r = first + warp; r < end; r += FIRST_WARPS) {
        auto const* const row = reinterpret_cast<Unit const*>(static_cast<Narrow const*>(p.a) + r * p.lda);
        float mean = 0;
        if constexpr (FIRST_NORM == 1)
            mean = sumOfRow(row, units, lane, [](float v) { return v; }) / float(p.k);
        float const squares = sumOfRow(row, units, lane, [=](float v) { return (v - mean) * (v - mean); });
        float const scale = rsqrtf(squares / float(p.k) + p.epsilon);
        if (lane == 0) {
            storeShared(to + r * 8, __float_as_uint(mean));
            storeShared(to + r * 8 + 4, __float_as_uint(scale));
        }
    }
    __syncwarp();
    if constexpr (SPLIT == 1)
        groupArrive(FIRST_BARRIER, GROUPS * 128 + FIRST_WARPS * 32);
}
// Before a block's first normalizeSums(). Clusters that split have another barrier in between.
TW_INLINE void awaitRows()
{
    if constexpr (SPLIT == 1)
        groupSync(FIRST_BARRIER, GROUPS * 128 + FIRST_WARPS * 32);
}

// Sums of b's columns n and n + 8, which are a lane's rows of swapped tiles.
struct OwnColumns
{
    float v[2] = {};
    TW_INLINE void take(FirstNorm const& p, int n)
    {
        if constexpr (FIRST_NORM == 1)
#pragma unroll
            for (int h = 0; h < 2; ++h)
                v[h] = n + h * 8 < p.columns ? p.sums[n + h * 8] : 0;
    }
};
// A lane's part of a tile of sums that begins at row0 and column0; own: of swapped tiles. What rows have that are none
// is nobody's.
template <class S, int N>
TW_INLINE void normalizeSums(FirstNorm const& p, S (&v)[N], OwnColumns const& own, u32 rows, int row0, int column0,
                             int lane)
{
    if constexpr (SWAP) {
#pragma unroll
        for (int j = 0; j < N / 4; ++j) {
            int const row = column0 + j * 8 + lane % 4 * 2;
            if (row >= kFirstRows)
                continue;
            float ends[4]; // mean and scale of this row and of the next
            loadShared(ends, rows + row * 8);
#pragma unroll
            for (int h = 0; h < 2; ++h)
#pragma unroll
                for (int e = 0; e < 2; ++e)
                    v[j * 4 + h * 2 + e] = (v[j * 4 + h * 2 + e] - ends[e * 2] * own.v[h]) * ends[e * 2 + 1];
        }
    } else {
        if (row0 >= kFirstRows)
            return;
        float mean[2], scale[2];
#pragma unroll
        for (int h = 0; h < 2; ++h)
            loadShared(rows + (row0 + lane / 4 + h * 8) * 8, mean[h], scale[h]);
#pragma unroll
        for (int j = 0; j < N / 4; ++j)
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                int const column = column0 + j * 8 + lane % 4 * 2 + e;
                float sum = 0;
                if constexpr (FIRST_NORM == 1)
                    sum = column < p.columns ? p.sums[column] : 0;
#pragma unroll
                for (int h = 0; h < 2; ++h)
                    v[j * 4 + h * 2 + e] = (v[j * 4 + h * 2 + e] - mean[h] * sum) * scale[h];
            }
    }
}

} // namespace tw::cuda::gemm_f16
