// SPDX-License-Identifier: Apache-2.0
// Copies of tiles of FP32 to shared memory.
//   int STEP, THREADS; bool SKEWED, A_ALONG_K, B_ALONG_K, PACKS_A, PACKS_B, PACKS_Y, EARLY, BIAS, RESIDUAL
#pragma once

#include "kernels/cuda/common/async_copies.cuh"
#include "kernels/cuda/common/clusters.cuh"
#include "kernels/cuda/common/prelude.cuh"
#include "kernels/cuda/gemm/simt_f32_params.h"

namespace tw::cuda::gemm_f32 {

// In shared memory: [row][k], 64 or 128 bytes each, units of 16 bytes placed so that 8 rows that follow each other lie in
// different banks; or [k][row], where SKEWED so that 8 rows of 4 steps of k that follow each other do.
TW_INLINE constexpr int unitAt(int row, int u)
{
    return row * STEP + (u ^ (STEP == 16 ? row >> 1 & 3 : row & 7)) * 4;
}
template <int TILE>
TW_INLINE constexpr int placeAt(int k, int row)
{
    return k * TILE + (SKEWED ? row ^ (k & 3) << 3 : row);
}
// A thread's part of the copies of one operand's tiles, EACH elements at once.
template <bool ALONG_K, int TILE, int EACH>
struct Loader
{
    static constexpr int UNITS = (ALONG_K ? STEP : TILE) / EACH, APART = THREADS / UNITS; // stored rows
    static constexpr int COUNT = (TILE * STEP / EACH + THREADS - 1) / THREADS;
    static_assert(THREADS % UNITS == 0, "a thread stays in its column");
    float const* source;
    i64 step, ahead;         // elements to this thread's next stored row, and to the next tile
    int stored, other, r, e; // of the tile's stored rows and columns, how many there are from this thread's on
    TW_INLINE void begin(float const* from, i64 ld, int row0, int rows, int k0, int k)
    {
        r = threadIdx.x / UNITS;
        e = threadIdx.x % UNITS * EACH;
        source = ALONG_K ? from + i64(row0 + r) * ld + k0 + e : from + i64(k0 + r) * ld + row0 + e;
        step = APART * ld;
        ahead = ALONG_K ? STEP : STEP * ld;
        stored = (ALONG_K ? rows - row0 : k - k0) - r;
        other = (ALONG_K ? k - k0 : rows - row0) - e;
    }
    TW_INLINE void next(float* to)
    {
        u32 const at = sharedAddress(to);
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            int const row = r + i * APART;
            if (TILE * STEP / EACH % THREADS != 0 && row >= (ALONG_K ? TILE : STEP))
                break;
            bool const valid = i * APART < stored && other > 0;
            u32 const target = at + (ALONG_K ? unitAt(row, e / 4) + e % 4 : placeAt<TILE>(row, e)) * 4;
            if constexpr (EACH == 4)
                copyAsync16(target, source + i * step, valid);
            else
                copyAsync4(target, source + i * step, valid);
        }
        source += ahead;
        (ALONG_K ? other : stored) -= STEP;
    }
};

} // namespace tw::cuda::gemm_f32
