// SPDX-License-Identifier: Apache-2.0
// Copies of tiles of matrices to shared memory, where they lie as in memory, [row][k] or [k][row].
//   int TILE_M, TILE_N, STEP, THREADS
#pragma once

#include "kernels/cuda/common/matrix.cuh"

namespace tw::cuda::product {

// Which tile of y a block has.
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

// A thread's part of the copies of one operand's tiles: EACH elements at once, of every APART-th stored row. Place::at(r, e)
// says where element e of stored row r lies, in bytes.
template <class E, class Place, bool ALONG_K, int TILE, int EACH>
struct Copies
{
    static constexpr int WIDTH = ALONG_K ? STEP : TILE, STORED = ALONG_K ? TILE : STEP; // of a tile
    static constexpr int PARTS = WIDTH / EACH, APART = THREADS / PARTS, COUNT = (STORED + APART - 1) / APART;
    static_assert(THREADS % PARTS == 0, "a thread stays in its column");
    E const* source;
    i64 step, ahead;         // elements to this thread's next stored row, and to the next tile
    int stored, other, r, e; // of the tile's stored rows and columns, how many there are from this thread's on
    TW_INLINE void begin(E const* from, i64 ld, int row0, int rows, int k0, int k)
    {
        r = threadIdx.x / PARTS;
        e = threadIdx.x % PARTS * EACH;
        source = ALONG_K ? from + i64(row0 + r) * ld + k0 + e : from + i64(k0 + r) * ld + row0 + e;
        step = APART * ld;
        ahead = ALONG_K ? STEP : STEP * ld;
        stored = (ALONG_K ? rows - row0 : k - k0) - r;
        other = (ALONG_K ? k - k0 : rows - row0) - e;
    }
    // f(i, place, source, whether there is such a row) for each of the thread's.
    template <class F>
    TW_INLINE void each(F const& f) const
    {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            if (STORED % APART != 0 && r + i * APART >= STORED)
                break;
            f(i, Place::at(r + i * APART, e), source + i * step, i * APART < stored);
        }
    }
    TW_INLINE void copy(u32 to) const
    {
        each([&](int, int place, E const* from, bool inside) {
            constexpr int BYTES = EACH * int(sizeof(E));
            if constexpr (BYTES == 16)
                copyAsync16(to + place, from, inside && other > 0);
            else if constexpr (BYTES == 8)
                copyAsync8(to + place, from, inside && other > 0);
            else
                copyAsync4(to + place, from, inside && other > 0);
        });
    }
    TW_INLINE void next()
    {
        source += ahead;
        (ALONG_K ? other : stored) -= STEP;
    }
};

} // namespace tw::cuda::product
