// SPDX-License-Identifier: Apache-2.0
// x: [outer, n, inner], along n.
//   int N: elements along the axis, the most where they are not EXACT; int X, Y; bool EXACT; bool RAW: registers keep FP16,
//   not FP32; int WIDTH: columns of a pack; int RESIDENT: blocks of a multiprocessor; what softmax_registers.cuh wants
#pragma once

#include "families/reduction/cuda_column.cuh"
#include "ops/softmax/softmax_params.h"
#include "ops/softmax/softmax_registers.cuh"

namespace tw::ops::softmax {

template <int V>
TW_INLINE void columns(ColumnsParams const& p)
{
    reduction::Column<V, (N + Y - 1) / Y, X, Y, EXACT ? N : 0> const column(p, EXACT ? N : int(p.n));
    waitForPrevious();
    releaseDependents();
    softmax<RAW && V >= 2>(column, static_cast<T const*>(p.x), static_cast<T*>(p.y));
}
TW_KERNEL_OF(__launch_bounds__(X* Y, RESIDENT) softmax_columns_packs, ColumnsParams, columns<WIDTH>)
TW_KERNEL_OF(__launch_bounds__(X* Y, RESIDENT) softmax_columns, ColumnsParams, columns<1>)

} // namespace tw::ops::softmax
