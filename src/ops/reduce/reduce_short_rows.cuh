// SPDX-License-Identifier: Apache-2.0
// A block copies ROWS rows to shared memory, in packs wherever they begin and end, and LANES threads reduce each.
//   int N: elements of a row, the most where they are not EXACT; int ROWS; bool EXACT; what reduce_arithmetic.cuh wants
#pragma once

#include "families/reduction/cuda_staged.cuh"
#include "ops/reduce/reduce_arithmetic.cuh"
#include "ops/reduce/reduce_params.h"

namespace tw::ops::reduce {

constexpr int THREADS = 256, LANES = ROWS < THREADS ? THREADS / ROWS : 1;
template <bool PACKS>
TW_INLINE void reduce(ShortRowsParams const& p)
{
    __shared__ alignas(16) T data[ROWS * N];
    waitForPrevious();
    releaseDependents();
    i64 const row0 = i64(blockIdx.x) * ROWS;
    int const n = EXACT ? N : int(p.count), rows = int(min(i64(ROWS), i64(p.results) - row0));
    reduction::stageIn<THREADS, PACKS>(data, static_cast<T const*>(p.x) + row0 * n, rows * n);
    int const lane = threadIdx.x % LANES;
    for (int r = threadIdx.x / LANES; r < ROWS; r += THREADS / LANES) {
        A v = identity();
        if (r < rows)
#pragma unroll 32
            for (int k = lane; k < n; k += LANES)
                v = join(v, Read<T>::from(data[r * n + k]));
#pragma unroll
        for (int d = LANES / 2; d > 0; d /= 2)
            v = join(v, __shfl_xor_sync(0xffffffffu, v, d));
        if (lane == 0 && r < rows)
            static_cast<T*>(p.y)[row0 + r] = store<T>(result(v, A(p.count)));
    }
}
TW_KERNEL_OF(__launch_bounds__(THREADS) reduce_short_rows_packs, ShortRowsParams, reduce<true>)
TW_KERNEL_OF(__launch_bounds__(THREADS) reduce_short_rows, ShortRowsParams, reduce<false>)

} // namespace tw::ops::reduce
