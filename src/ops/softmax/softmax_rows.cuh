// SPDX-License-Identifier: Apache-2.0
// Rows that lie together (nothing after the axis).
//   int THREADS: of a block; int ROW: of them, those of a row; int WIDTH: elements of 16 bytes; int PACKS: of them, those
//   of a thread; what softmax_registers.cuh wants
#pragma once

#include "families/reduction/cuda_row.cuh"
#include "ops/softmax/softmax_params.h"
#include "ops/softmax/softmax_registers.cuh"

namespace tw::ops::softmax {

template <int V, int P, bool EDGES>
TW_INLINE void rows(Params const& p)
{
    releaseDependents();
    waitForPrevious();
    reduction::Row<V, P, ROW, THREADS, EDGES> const row(idx(p.slices), idx(p.n));
    i64 const begin = i64(row.number) * p.n;
    softmax<false>(row, static_cast<T const*>(p.x) + begin, static_cast<T*>(p.y) + begin);
}
TW_KERNEL_OF(__launch_bounds__(THREADS) softmax_packs, Params, rows<WIDTH, PACKS, false>)
TW_KERNEL_OF(__launch_bounds__(THREADS) softmax_edges, Params, rows<WIDTH, PACKS, true>)
TW_KERNEL_OF(__launch_bounds__(THREADS) softmax_elements, Params, rows<1, PACKS * WIDTH, false>)

} // namespace tw::ops::softmax
