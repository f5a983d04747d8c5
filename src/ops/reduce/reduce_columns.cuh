// SPDX-License-Identifier: Apache-2.0
// Columns of a matrix, or of many. A block has X packs of V neighbouring columns and Y of the rows at a time, AHEAD times
// as many on their way. `shares` blocks share the rows of a pack; the same kernel adds up what each of them left. Whole: a
// block has all columns of a matrix, FOLD rows of it side by side. The order of all sums is fixed.
//   int THREADS: of a block; int WIDTH: columns of a pack; bool IS_PADDED: the last pack of a row need not be full; int
//   LANES: packs of a block; int FOLDED: rows side by side; bool IS_WHOLE; int AHEAD; int BLOCKS: of a multiprocessor, for
//   accumulators of 32 bits; what reduce_arithmetic.cuh wants
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/reduce/reduce_arithmetic.cuh"
#include "ops/reduce/reduce_params.h"

namespace tw::ops::reduce {

using Args = ColumnsParams<T, A>;
// Blocks of a multiprocessor: else the compiler saves registers and waits for every fourth load.
constexpr int RESIDENT = sizeof(A) > 4 ? 1 : BLOCKS;
template <class In, int V, int X, bool WHOLE, int FOLD>
TW_INLINE void columns(Args const& p)
{
    constexpr int Y = THREADS / X, GROUPS = X < 32 && !WHOLE ? THREADS / 32 : Y, ALL = X * V;
    __shared__ alignas(16) A part[GROUPS][ALL];
    waitForPrevious();
    releaseDependents();
    int const cx = threadIdx.x % X, cy = threadIdx.x / X;
    idx const tile = divide(blockIdx.x, p.shares), share = blockIdx.x - tile * idx(p.shares.d), pack = tile * X + cx;
    bool const takesPart = THREADS % X == 0 || cy < Y;
    A v[V];
#pragma unroll
    for (int j = 0; j < V; ++j)
        v[j] = identity();
    if (pack < p.packs && takesPart) {
        idx const o = divide(pack, p.packsOfRow);
        int const first = int(p.n * share / p.shares.d), last = int(p.n * (share + 1) / p.shares.d);
        i64 const step = Y * p.pitch;
        In const* x = static_cast<In const*>(p.x) + i64(o) * p.n * p.pitch + i64(pack - o * idx(p.packsOfRow.d)) * V +
                      i64(first + cy) * p.pitch;
        int k = first + cy;
        for (; k + (AHEAD - 1) * Y < last; k += AHEAD * Y, x += AHEAD * step) {
            Pack<In, V> u[AHEAD];
#pragma unroll
            for (int a = 0; a < AHEAD; ++a)
                u[a] = *reinterpret_cast<Pack<In, V> const*>(x + a * step);
#pragma unroll
            for (int a = 0; a < AHEAD; ++a)
#pragma unroll
                for (int j = 0; j < V; ++j)
                    v[j] = join(v[j], Read<In>::from(u[a].v[j]));
        }
        if (k < last) {
            Pack<In, V> u[AHEAD - 1];
#pragma unroll
            for (int a = 0; a < AHEAD - 1; ++a)
                if (k + a * Y < last)
                    u[a] = *reinterpret_cast<Pack<In, V> const*>(x + a * step);
#pragma unroll
            for (int a = 0; a < AHEAD - 1; ++a)
                if (k + a * Y < last)
#pragma unroll
                    for (int j = 0; j < V; ++j)
                        v[j] = join(v[j], Read<In>::from(u[a].v[j]));
        }
    }
    if (!WHOLE)
#pragma unroll
        for (int d = X; d < 32; d *= 2)
#pragma unroll
            for (int j = 0; j < V; ++j)
                v[j] = join(v[j], __shfl_xor_sync(0xffffffffu, v[j], d));
    if (takesPart && (WHOLE || X >= 32 || threadIdx.x % 32 < X))
#pragma unroll
        for (int j = 0; j < V; ++j)
            part[X < 32 && !WHOLE ? threadIdx.x / 32 : cy][cx * V + j] = v[j];
    __syncthreads();
    auto give = [&](i64 column, A sum) {
        if (p.parts)
            p.parts[i64(share) * p.columns + column] = sum;
        else
            p.y[column] = store<T>(result(sum, A(p.count)));
    };
    if constexpr (WHOLE) { // [Y, FOLD, INNER] in shared memory
        constexpr int INNER = ALL / FOLD, ROWS = Y * FOLD;
        A const* const rows = &part[0][0];
        if constexpr (ROWS >= 32) {
            for (int c = threadIdx.x / 32; c < INNER; c += THREADS / 32) {
                A sum = identity();
                for (int r = threadIdx.x % 32; r < ROWS; r += 32)
                    sum = join(sum, rows[r * INNER + c]);
                sum = warpReduce(sum, [](A a, A b) { return join(a, b); });
                if (threadIdx.x % 32 == 0)
                    give(i64(tile) * INNER + c, sum);
            }
        } else {
            for (int c = threadIdx.x; c < INNER; c += THREADS) {
                A sum = rows[c];
#pragma unroll
                for (int r = 1; r < ROWS; ++r)
                    sum = join(sum, rows[r * INNER + c]);
                give(i64(tile) * INNER + c, sum);
            }
        }
    } else {
        for (int c = threadIdx.x; c < ALL; c += THREADS) {
            A sum = part[0][c];
#pragma unroll
            for (int g = 1; g < GROUPS; ++g)
                sum = join(sum, part[g][c]);
            i64 column = i64(tile) * ALL + c;
            bool exists = column < p.columns;
            if constexpr (IS_PADDED && V > 1) {
                idx const pack = tile * X + c / V, o = divide(pack, p.packsOfRow);
                i64 const at = i64(pack - o * idx(p.packsOfRow.d)) * V + c % V;
                column = o * p.inner + at;
                exists = pack < p.packs && at < p.inner;
            }
            if (exists)
                give(column, sum);
        }
    }
}
TW_KERNEL_OF(__launch_bounds__(THREADS, RESIDENT) reduce_columns_packs, Args,
             columns<T, WIDTH, LANES, IS_WHOLE, FOLDED>)
TW_KERNEL_OF(__launch_bounds__(THREADS, RESIDENT) reduce_columns, Args, columns<T, 1, 32, false, 1>)
TW_KERNEL_OF(__launch_bounds__(THREADS, RESIDENT) reduce_columns_finish, Args, columns<A, 1, 8, false, 1>)

} // namespace tw::ops::reduce
