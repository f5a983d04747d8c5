// SPDX-License-Identifier: Apache-2.0
// Convolutions over up to three axes, transposed ones phase by phase, by mma.sync. After mma_nd_floats.cuh or
// mma_nd_i8.cuh.
//   int STAGES, BLOCKS_PER_SM
#pragma once

#include "kernels/cuda/conv/mma_nd_places.cuh"

namespace tw::cuda::conv_nd {

TW_KERNEL __launch_bounds__(THREADS, BLOCKS_PER_SM) convolve(const __grid_constant__ Args a)
{
    extern __shared__ __align__(128) u8 raw[];
    u32 const base = sharedAddress(raw);
    int const tid = threadIdx.x, warp = tid / 32, lane = tid % 32;
    int const split = splitCount(), rank = splitRank();
    int const m0 = blockIdx.x / split * TILE_M, n0 = blockIdx.y * TILE_N;
    int const phaseNumber = blockIdx.z / a.groups, group = blockIdx.z - phaseNumber * a.groups;
    int const begin = int(i64(a.stepsK) * rank / split), end = int(i64(a.stepsK) * (rank + 1) / split);
    Element const* const x = a.x + i64(group) * a.channels;
    Element const* const filters = a.filters + i64(blockIdx.z) * a.n * a.paddedK;
    Phase const phase(a, phaseNumber);
    releaseDependents();

    // x: each thread has one place in k and PIXELS rows.
    constexpr int PER_ROW = STEP / VECTOR, ROWS_AT_ONCE = VECTOR == 1 ? 0 : THREADS / PER_ROW;
    constexpr int PIXELS = VECTOR == 1 ? 1 : TILE_M / (THREADS / PER_ROW),
                  LOADS = VECTOR == 1 ? TILE_M * STEP / THREADS : 1;
    int const row0 = VECTOR == 1 ? tid % TILE_M : tid / PER_ROW,
              k0 = VECTOR == 1 ? tid / TILE_M * LOADS : tid % PER_ROW * VECTOR;
    Pixel pixel[PIXELS];
#pragma unroll
    for (int i = 0; i < PIXELS; ++i)
        pixel[i].set(a, phase, m0 + row0 + i * ROWS_AT_ONCE);
    Taps taps(a, begin * STEP + k0);

    constexpr int UNITS = ROW_BYTES / 16, UNIT = 16 / BYTES; // of a row of filters
    auto loadFilters = [&](int step, u32 to) {
#pragma unroll
        for (int i = 0; i < (TILE_N * UNITS + THREADS - 1) / THREADS; ++i) {
            int const at = tid + i * THREADS, r = at / UNITS, u = at % UNITS;
            if (TILE_N * UNITS % THREADS == 0 || at < TILE_N * UNITS)
                copyAsync16(to + unitAt(r, u), filters + i64(n0 + r) * a.paddedK + step * STEP + u * UNIT,
                            n0 + r < a.n);
        }
    };
    auto placeIn = [&](int row, int k) { return unitAt(row, k / UNIT) + k % UNIT * BYTES; };
    auto copyX = [&](u32 to) {
        if constexpr (VECTOR > 1) {
            Step const step(a, phase, taps);
            Element const* const from = x + step.at;
#pragma unroll
            for (int i = 0; i < PIXELS; ++i)
                copyPart(to + placeIn(row0 + i * ROWS_AT_ONCE, k0), from + pixel[i].at, step.bytesFor(a, pixel[i]));
        } else {
            Taps t = taps;
#pragma unroll 4
            for (int i = 0; i < LOADS; ++i) {
                Step const step(a, phase, t);
                copyPart(to + placeIn(row0, k0 + i), x + step.at + pixel[0].at, step.bytesFor(a, pixel[0]));
                t.move(a, 1);
            }
        }
        taps.move(a, STEP);
    };

    // The first steps; filters are constant, x may belong to the kernel before.
#pragma unroll 1
    for (int s = 0; s < STAGES - 1; ++s)
        if (begin + s < end)
            loadFilters(begin + s, base + s * STAGE_BYTES + X_BYTES);
    waitForPrevious();
#pragma unroll 1
    for (int s = 0; s < STAGES - 1; ++s) {
        if (begin + s < end)
            copyX(base + s * STAGE_BYTES);
        copyCommit();
    }
    Sums sums(warp);
    int stage = 0, ahead = STAGES - 1;
    for (int step = begin; step < end; ++step) {
        copyWait<STAGES - 2>();
        __syncthreads();
        if (step + STAGES - 1 < end) {
            u32 const next = base + ahead * STAGE_BYTES;
            loadFilters(step + STAGES - 1, next + X_BYTES);
            copyX(next);
        }
        copyCommit();
        u32 const xs = base + stage * STAGE_BYTES;
        sums.add(xs, xs + X_BYTES, lane);
        if (++stage == STAGES)
            stage = 0;
        if (++ahead == STAGES)
            ahead = 0;
    }
    copyWait<0>();
    __syncthreads(); // all stages are read
    sums.put(base, lane);
    if (split > 1)
        splitSync();
    else
        __syncthreads();

    // Each block writes its part of the tile's rows: a thread four columns of a row at a time.
    constexpr int ACROSS = TILE_N / 4, ROWS = THREADS / ACROSS;
    int const rows = TILE_M / split, row1 = tid / ACROSS, column = n0 + tid % ACROSS * 4, left = a.n - column;
    int const first = m0 + rank * rows, last = min(first + rows, a.m), filter = group * a.n + column;
    Finish const ends(a, filter, left);
#pragma unroll 1
    for (int m = first + row1; m < last; m += ROWS) {
        Position const q(a, m);
        int const d = q.d * a.axes[0].phases + phase.d, h = q.h * a.axes[1].phases + phase.h,
                  w = q.w * a.axes[2].phases + phase.w;
        if (left <= 0 || d >= a.axes[0].out || h >= a.axes[1].out || w >= a.axes[2].out)
            continue;
        i64 const pixelY = ((i64(q.image) * a.axes[0].out + d) * a.axes[1].out + h) * a.axes[2].out + w;
        u32 const from = base + ((m - m0) * PITCH + tid % ACROSS * 4) * 4;
        ends.put(a, from, split, pixelY, filter, left);
    }
    if (split > 1) {
        __syncwarp();
        splitSync(); // others have read this block's sums
    }
}

} // namespace tw::cuda::conv_nd
