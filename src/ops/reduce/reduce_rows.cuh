// SPDX-License-Identifier: Apache-2.0
// A warp or a block for each row, or several blocks and then one or the other for what they leave. Rows may begin at any
// element: before the first whole pack and after the last one lie fewer than V elements each.
//   int PACKS_AHEAD: of a row that a lane loads before it uses the first; int BLOCKS: of a multiprocessor (accumulators of
//   64 bits have numbers of their own for both); what reduce_arithmetic.cuh wants
#pragma once

#include "families/reduction/cuda_team.cuh"
#include "ops/reduce/reduce_arithmetic.cuh"
#include "ops/reduce/reduce_params.h"

namespace tw::ops::reduce {

constexpr int AHEAD = sizeof(A) > 4 ? 2 : PACKS_AHEAD, RESIDENT = sizeof(A) > 4 ? 1 : BLOCKS;
template <class In>
TW_INLINE A part(In const* first, i64 n, idx lane, idx lanes)
{
    constexpr int V = 16 / sizeof(In);
    i64 const aligned = -i64(u64(first) / sizeof(In)) & (V - 1), head = aligned < n ? aligned : n;
    Pack<In, V> const* const x = reinterpret_cast<Pack<In, V> const*>(first + head);
    idx const packs = idx(n - head) / V, behind = idx(head) + packs * V;
    A v[V];
#pragma unroll
    for (int j = 0; j < V; ++j)
        v[j] = identity();
    if (lane < head)
        v[0] = Read<In>::from(first[lane]);
    if (behind + lane < n)
        v[1] = Read<In>::from(first[behind + lane]);
    for (idx k = lane; k < packs; k += AHEAD * lanes) {
        Pack<In, V> ahead[AHEAD];
#pragma unroll
        for (int a = 0; a < AHEAD; ++a)
            if (k + a * lanes < packs)
                ahead[a] = x[k + a * lanes];
#pragma unroll
        for (int a = 0; a < AHEAD; ++a)
            if (k + a * lanes < packs)
#pragma unroll
                for (int j = 0; j < V; ++j)
                    v[j] = join(v[j], Read<In>::from(ahead[a].v[j]));
    }
#pragma unroll
    for (int j = 1; j < V; ++j)
        v[0] = join(v[0], v[j]);
    return v[0];
}
// Rows of n; teams share each as p.shares says, or not. FINISHES: rows of what such shares left.
template <class Team, class In, bool FINISHES, bool SHARES = false>
TW_INLINE void rows(RowsParams const& p)
{
    void const* const x = FINISHES ? p.parts : p.x;
    i64 const n = FINISHES ? i64(p.shares.d) : i64(p.count);
    waitForPrevious();
    releaseDependents();
    idx const all = Team::set(), row = SHARES ? divide(all, p.shares) : all,
              share = SHARES ? all - row * idx(p.shares.d) : 0, shares = SHARES ? idx(p.shares.d) : 1;
    if (row >= p.results)
        return;
    i64 const begin = i64(u64(n) * share / shares), end = i64(u64(n) * (share + 1) / shares);
    A const v =
        Team::join(part(static_cast<In const*>(x) + i64(row) * n + begin, end - begin, Team::lane(), Team::lanes()),
                   A(identity()), [](A a, A b) { return join(a, b); });
    if (Team::lane() != 0)
        return;
    if (shares == 1)
        static_cast<T*>(p.y)[row] = store<T>(result(v, A(p.count)));
    else
        static_cast<A*>(p.parts)[all] = v;
}
TW_KERNEL_OF(__launch_bounds__(256, RESIDENT) reduce_warps, RowsParams, rows<reduction::Warp, T, false>)
TW_KERNEL_OF(__launch_bounds__(256, RESIDENT) reduce_rows, RowsParams, rows<reduction::Block, T, false, true>)
TW_KERNEL_OF(__launch_bounds__(256) reduce_rows_finish, RowsParams, rows<reduction::Warp, A, true>)
// As reduce_rows_finish, by a block for each row.
TW_KERNEL_OF(__launch_bounds__(256) reduce_rows_finish_many, RowsParams, rows<reduction::Block, A, true>)

} // namespace tw::ops::reduce
