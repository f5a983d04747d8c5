// SPDX-License-Identifier: Apache-2.0
// Sums of convolutions over up to three axes to pixels of y, through shared memory. After window_finish_*.cuh.
#pragma once

#include "kernels/cuda/mma/windows.cuh"

namespace tw::cuda::product {

struct End
{
    u32 base;
    TW_INLINE explicit End(u32 base) : base(base) {}
    TW_INLINE void begin(Args const&, Windows const&) const {}
    TW_INLINE void put() const {}
    TW_INLINE void write(Args const& a, Windows const& source, Sums const& sums, Sums::Values const& values) const
    {
        int const split = source.split, rank = source.rank, m0 = source.m0, tid = threadIdx.x;
        Phase const& phase = source.phase;
        __syncthreads(); // all stages are read
        sums.put(values, base);
        if (split > 1)
            splitSync();
        else
            __syncthreads();

        // Each block writes its part of the tile's rows: a thread four columns of a row at a time.
        constexpr int ACROSS = TILE_N / 4, ROWS = THREADS / ACROSS;
        int const rows = TILE_M / split, row1 = tid / ACROSS, column = source.n0 + tid % ACROSS * 4,
                  left = a.n - column;
        int const first = m0 + rank * rows, last = min(first + rows, a.m), filter = phase.group * a.n + column;
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
};

} // namespace tw::cuda::product
