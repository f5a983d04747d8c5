// SPDX-License-Identifier: Apache-2.0
// Tiles of mma_f16.cuh, before the rows' copies.
#pragma once

namespace tw::cuda {

constexpr int THREADS = WARPS * 32, ROWS = WARPS * 16;
constexpr int PITCH = (D > DV ? D : DV) * 2 + 16; // an odd number of 16 bytes: no bank conflicts
constexpr u32 TILE_BYTES = KEYS * PITCH;
// Fragments of queries stay in registers where there is room for them.
constexpr bool KEEPS = D <= 128;

} // namespace tw::cuda
