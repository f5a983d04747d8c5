// SPDX-License-Identifier: Apache-2.0
// Pixels of x that the outputs of a block see, in shared memory, UNITS of 8 channels of each. After an epilogue.
//   int THREADS, IN_D, IN_H, IN_W (pixels), UNITS, TAIL (channels of a pixel's last unit)
#pragma once

#include "families/convolution/cuda_conv_patch_params.h"
#include "kernels/cuda/common/matrix.cuh"

namespace tw::ops::patch {

using namespace tw::cuda;

constexpr int PIXEL = (UNITS | 1) * 16; // bytes; an odd number of 16: no bank conflicts

// What lies behind the last channel may be anything.
TW_INLINE Unit withoutGap(Unit u)
{
#pragma unroll
    for (int i = 0; i < 4; ++i)
        u.v[i] = i * 2 + 1 < TAIL ? u.v[i] : i * 2 < TAIL ? u.v[i] & 0xffff : 0;
    return u;
}

// All threads wait until the tile whose first pixel is d0, h0, w0 of y, of an image, is there.
TW_INLINE void fetchTile(PatchParams const& p, u32 tile, int pass, int image, int d0, int h0, int w0)
{
    if (pass > 0)
        __syncthreads(); // all have read the pass before
    for (int i = threadIdx.x; i < IN_D * IN_H * IN_W * UNITS; i += THREADS) {
        int const pixel = i / UNITS, unit = i % UNITS, row = pixel / IN_W, plane = row / IN_H;
        int const d = d0 - p.padD + plane, h = h0 - p.padH + row % IN_H, w = w0 - p.padW + pixel % IN_W,
                  all = pass * UNITS + unit;
        bool const isThere = u32(d) < u32(p.d) && u32(h) < u32(p.h) && u32(w) < u32(p.w) && all < p.units;
        Narrow const* const from =
            static_cast<Narrow const*>(p.x) + (((i64(image) * p.d + d) * p.h + h) * p.w + w) * p.pixelX + all * 8;
        if (TAIL < 8 && isThere && all == p.units - 1)
            storeShared(tile + pixel * PIXEL + unit * 16, withoutGap(*reinterpret_cast<Unit const*>(from)));
        else
            copyAsync16(tile + pixel * PIXEL + unit * 16, isThere ? from : p.x, isThere);
    }
    copyCommit();
    copyWait<0>();
    __syncthreads();
}

} // namespace tw::ops::patch
