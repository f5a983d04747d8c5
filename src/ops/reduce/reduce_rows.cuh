// SPDX-License-Identifier: Apache-2.0
// A warp or a block for each row, or several blocks and then a warp for what they leave. Rows may begin at any element:
// before the first whole pack and after the last one lie fewer than V elements each.
//   int PACKS_AHEAD: of a row that a lane loads before it uses the first; int BLOCKS: of a multiprocessor (accumulators
// of
//   64 bits have numbers of their own for both); what reduce_arithmetic.cuh wants
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/reduce/reduce_arithmetic.cuh"
#include "ops/reduce/reduce_params.h"

namespace tw::ops::reduce {

constexpr int V = 16 / sizeof(T), AHEAD = sizeof(A) > 4 ? 2 : PACKS_AHEAD, RESIDENT = sizeof(A) > 4 ? 1 : BLOCKS;
TW_INLINE void finish(RowsParams const& p, idx i, A v)
{
    static_cast<T*>(p.y)[i] = store<T>(result(v, A(p.count)));
}
TW_INLINE A part(T const* first, i64 n, idx lane, idx lanes)
{
    i64 const aligned = -i64(u64(first) / sizeof(T)) & (V - 1), head = aligned < n ? aligned : n;
    Pack<T, V> const* const x = reinterpret_cast<Pack<T, V> const*>(first + head);
    idx const packs = idx(n - head) / V, behind = idx(head) + packs * V;
    A v[V];
#pragma unroll
    for (int j = 0; j < V; ++j)
        v[j] = identity();
    if (lane < head)
        v[0] = A(load<Number>(first[lane]));
    if (behind + lane < n)
        v[1] = A(load<Number>(first[behind + lane]));
    for (idx k = lane; k < packs; k += AHEAD * lanes) {
        Pack<T, V> ahead[AHEAD];
#pragma unroll
        for (int a = 0; a < AHEAD; ++a)
            if (k + a * lanes < packs)
                ahead[a] = x[k + a * lanes];
#pragma unroll
        for (int a = 0; a < AHEAD; ++a)
            if (k + a * lanes < packs)
#pragma unroll
                for (int j = 0; j < V; ++j)
                    v[j] = join(v[j], A(load<Number>(ahead[a].v[j])));
    }
#pragma unroll
    for (int j = 1; j < V; ++j)
        v[0] = join(v[0], v[j]);
    return v[0];
}
TW_INLINE A joinWarp(A v)
{
    return warpReduce(v, [](A a, A b) { return join(a, b); });
}
TW_KERNEL __launch_bounds__(256, RESIDENT) reduce_warps(const __grid_constant__ RowsParams p)
{
    waitForPrevious();
    releaseDependents();
    idx const row = threadIndex() / 32;
    if (row >= p.results)
        return;
    A const v = joinWarp(part(static_cast<T const*>(p.x) + i64(row) * p.count, p.count, threadIdx.x % 32, 32));
    if (threadIdx.x % 32 == 0)
        finish(p, row, v);
}
TW_KERNEL __launch_bounds__(256, RESIDENT) reduce_rows(const __grid_constant__ RowsParams p)
{
    __shared__ A scratch[32];
    waitForPrevious();
    releaseDependents();
    idx const row = divide(blockIdx.x, p.shares), share = blockIdx.x - row * idx(p.shares.d);
    i64 const begin = i64(p.count * share / p.shares.d), end = i64(p.count * (share + 1) / p.shares.d);
    A const v =
        blockReduce(part(static_cast<T const*>(p.x) + i64(row) * p.count + begin, end - begin, threadIdx.x, blockDim.x),
                    identity(), scratch, [](A a, A b) { return join(a, b); });
    if (threadIdx.x != 0)
        return;
    if (p.shares.d == 1)
        finish(p, row, v);
    else
        static_cast<A*>(p.parts)[blockIdx.x] = v;
}
TW_KERNEL __launch_bounds__(256) reduce_rows_finish(const __grid_constant__ RowsParams p)
{
    waitForPrevious();
    releaseDependents();
    idx const row = threadIndex() / 32;
    if (row >= p.results)
        return;
    A v = identity();
    for (idx k = threadIdx.x % 32; k < p.shares.d; k += 32)
        v = join(v, static_cast<A const*>(p.parts)[row * p.shares.d + k]);
    v = joinWarp(v);
    if (threadIdx.x % 32 == 0)
        finish(p, row, v);
}
// As reduce_rows_finish, by a block for each row.
TW_KERNEL __launch_bounds__(256) reduce_rows_finish_many(const __grid_constant__ RowsParams p)
{
    __shared__ A scratch[32];
    waitForPrevious();
    releaseDependents();
    A const* const parts = static_cast<A const*>(p.parts) + u64(blockIdx.x) * p.shares.d;
    A v = identity();
#pragma unroll 4
    for (idx k = threadIdx.x; k < p.shares.d; k += 256)
        v = join(v, parts[k]);
    v = blockReduce(v, identity(), scratch, [](A a, A b) { return join(a, b); });
    if (threadIdx.x == 0)
        finish(p, blockIdx.x, v);
}

} // namespace tw::ops::reduce
