// SPDX-License-Identifier: Apache-2.0
// Sums of i8 to their end. After sums_i8.cuh.
#pragma once

#include "kernels/cuda/mma/split.cuh"

namespace tw::cuda::product {

struct End
{
    u32 base;
    TW_INLINE explicit End(u32 base) : base(base) {}
    TW_INLINE void begin(Args const&, Matrices const&) const {}
    TW_INLINE void put() const {}
    TW_INLINE void write(Args const& a, Matrices const& source, Sums const& sums, Sums::Values const& values) const
    {
        int const row = source.tile.m0 + sums.row, column = source.tile.n0 + sums.column + source.rank * (PART * 8);
        if constexpr (CLUSTERS) {
            share(sums, values, base, source.rank);
            i32 all[BLOCKS_M][PART * 4] = {};
#pragma unroll
            for (int i = 0; i < BLOCKS_M; ++i)
                addUp(all[i], base, i, sums.tid);
            writeAll(a, reinterpret_cast<Sums16 const(&)[BLOCKS_M][PART / 2]>(all), source.tile.batch, row, column,
                     sums.lane);
        } else {
            writeAll(a, values, source.tile.batch, row, column, sums.lane);
        }
    }
    // 16 PART columns from `column` on of the warp's rows from `row` on.
    template <int BLOCKS>
    static TW_INLINE void writeAll(Args const& a, Sums16 const (&sum)[BLOCKS_M][BLOCKS], int batch, int row, int column,
                                   int lane)
    {
        constexpr int GROUPS = BLOCKS % 2 == 0 ? 2 : 1;
        EndNumbers const numbers = endNumbers(a.end);
        i64 const first = (i64(batch) * a.m + row + lane / 4 * 2) * a.n + column;
#pragma unroll
        for (int j = 0; j < BLOCKS; j += GROUPS) {
            int const left = a.n - column - j * 16;
            EndColumns<GROUPS> ends;
            ends.take(a.end, column + j * 16, left, lane);
#pragma unroll
            for (int i = 0; i < BLOCKS_M; ++i)
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    i32 v[GROUPS][4];
#pragma unroll
                    for (int g = 0; g < GROUPS; ++g)
                        sum[i][j + g].row(v[g], h);
                    i64 const at = first + i64(i * 16 + h) * a.n + j * 16;
                    ends.put(v, numbers, a.end.table, static_cast<EndElement*>(a.y) + at,
                             static_cast<EndResidual const*>(a.end.residual) + at,
                             row + i * 16 + lane / 4 * 2 + h < a.m ? left : 0, lane);
                }
        }
    }
};

} // namespace tw::cuda::product
