// SPDX-License-Identifier: Apache-2.0
// A block copies its rows, together whole packs, to shared memory and back; LANES threads have the words of one row in
// registers.
//   int N: elements of a row; int LANES; int THREADS: of a block; what softmax_registers.cuh wants
#pragma once

#include "families/reduction/cuda_row.cuh"
#include "families/reduction/cuda_staged.cuh"
#include "ops/softmax/softmax_params.h"
#include "ops/softmax/softmax_registers.cuh"

namespace tw::ops::softmax {

TW_KERNEL __launch_bounds__(THREADS) softmax_short_rows(const __grid_constant__ ShortRowsParams p)
{
    constexpr int ROWS = THREADS / LANES, V = 4 / int(sizeof(T)), WORDS = (N + V - 1) / V;
    __shared__ alignas(16) T data[ROWS * N];
    waitForPrevious();
    releaseDependents();
    i64 const row0 = i64(blockIdx.x) * ROWS;
    int const elements = int(min(i64(ROWS), i64(p.rows) - row0)) * N;
    reduction::stageIn<THREADS, true>(data, static_cast<T const*>(p.x) + row0 * N, elements);
    reduction::Row<V, (WORDS + LANES - 1) / LANES, LANES, THREADS, N % V != 0> const row(idx(p.rows), N);
    T* const own = data + int(row.number - idx(row0)) * N;
    softmax<false>(row, own, own);
    reduction::stageOut<THREADS>(static_cast<T*>(p.y) + row0 * N, data, elements);
}

} // namespace tw::ops::softmax
