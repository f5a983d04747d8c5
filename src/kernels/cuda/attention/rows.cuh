// SPDX-License-Identifier: Apache-2.0
// Rows of tiles in shared memory. Copies move UNIT elements; the text before defines UNIT, THREADS and PITCH.
#pragma once

#include "kernels/cuda/attention/masks.cuh"

namespace tw::cuda {

// R rows of HEAD elements, columns from there to D (whole 16 bytes) and rows from `rows` on are zero.
template <int R, int HEAD, int D>
TW_INLINE void loadTile(u32 to, Element const* from, i64 rowStride, int row0, int rows)
{
    constexpr int BYTES = UNIT * int(sizeof(Element)), STEP = BYTES < 4 ? 2 : UNIT, UNITS = D / STEP;
#pragma unroll 4
    for (int i = 0; i < (R * UNITS + THREADS - 1) / THREADS; ++i) {
        int const at = threadIdx.x + i * THREADS, r = at / UNITS, u = at % UNITS;
        if (R * UNITS % THREADS == 0 || at < R * UNITS) {
            u32 const place = to + r * PITCH + u * STEP * int(sizeof(Element));
            Element const* const x = from + i64(row0 + r) * rowStride + u * STEP;
            bool const valid = row0 + r < rows && u * STEP < HEAD;
            if constexpr (BYTES == 16)
                copyAsync16(place, x, valid);
            else if constexpr (BYTES == 8)
                copyAsync8(place, x, valid);
            else if constexpr (BYTES == 4)
                copyAsync4(place, x, valid);
            else { // halves one by one: too few bytes for an asynchronous copy
                u16 const* const bits = reinterpret_cast<u16 const*>(x);
                u32 const low = valid ? bits[0] : 0, high = valid && u * STEP + 1 < HEAD ? bits[1] : 0;
                storeShared(place, low | high << 16);
            }
        }
    }
}

} // namespace tw::cuda
