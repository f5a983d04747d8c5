// SPDX-License-Identifier: Apache-2.0
// Tiles of mma_f32.cuh, before the rows' copies.
#pragma once

namespace tw::cuda {

constexpr int THREADS = WARPS * PARTS * 32, ROWS = WARPS * BLOCKS * 16, TILE_KEYS = KEYS * PARTS;
constexpr int PITCH = (D > DV ? D : DV) * 4 + 16; // an odd number of 16 bytes: no bank conflicts
constexpr u32 TILE_BYTES = TILE_KEYS * PITCH;
// Fragments of queries stay in registers where there is room for them.
constexpr bool KEEPS = D * BLOCKS * (TF32X3 ? 2 : 1) <= 128 && DV <= 128;
// Columns of values (by 8) whose late sums are in registers at a time.
constexpr int COLUMNS = !TF32X3 || DV <= 128 ? DV / 8 : 8;

} // namespace tw::cuda
