// SPDX-License-Identifier: Apache-2.0
// Which tile of y a block has.
//   int TILE_M, TILE_N
#pragma once

#include "kernels/cuda/common/device.cuh"
#include "kernels/cuda/common/params.h"

namespace tw::cuda::product {

struct Tile
{
    int batch, m0, n0;
};
// Blocks at the same time: up to 8 rows of tiles, so that they read the same columns.
template <class Args>
TW_INLINE Tile tileAt(Args const& a, int i)
{
    int const tiles = a.tilesM * a.tilesN, batch = i / tiles, inBatch = i % tiles;
    int const band = inBatch / (8 * a.tilesN) * 8, height = min(8, a.tilesM - band), inBand = inBatch - band * a.tilesN;
    return {batch, (band + inBand % height) * TILE_M, inBand / height * TILE_N};
}
// How far into a and b a batch's matrices lie.
template <class Args>
TW_INLINE void locateBatch(Args const& a, int batch, i64 (&at)[2])
{
    at[0] = at[1] = 0;
    if (a.batches == 1)
        return;
#pragma unroll
    for (int d = 7; d >= 0; --d) {
        Div const& dim = a.batch.dim[d];
        int const q = int((__umulhi(u32(batch), dim.m) + u32(batch)) >> dim.s), c = batch - q * int(dim.d);
        at[0] += c * a.batch.stride[0][d];
        at[1] += c * a.batch.stride[1][d];
        batch = q;
    }
}

} // namespace tw::cuda::product
