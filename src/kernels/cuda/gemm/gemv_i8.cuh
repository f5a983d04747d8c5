// SPDX-License-Identifier: Apache-2.0
// Products of few rows of i8 with a matrix whose columns are read once: a in shared memory, COLUMNS columns for each warp,
// whose lanes take 16 bytes of k in turn. WARPS_K warps share the k of their columns. After integerEndSource().
//   int ROWS (at least m), COLUMNS, WARPS_K, THREADS; bool PACKS, EARLY
#pragma once

#include "kernels/cuda/common/dependence.cuh"
#include "kernels/cuda/common/integer_end.cuh"
#include "kernels/cuda/gemm/mma_params.h"

namespace tw::cuda::gemv_i8 {

constexpr int WARPS = THREADS / 32, GROUPS = WARPS / WARPS_K, SUMS = ROWS * COLUMNS;
constexpr int FINAL = SUMS > 32 ? SUMS / 32 : 1; // sums that a lane ends up with

TW_INLINE i32 dot(uint4 a, uint4 b, i32 sum)
{
    sum = __dp4a(int(a.x), int(b.x), sum);
    sum = __dp4a(int(a.y), int(b.y), sum);
    sum = __dp4a(int(a.z), int(b.z), sum);
    return __dp4a(int(a.w), int(b.w), sum);
}
// Adds up over the lanes; lane l keeps sums [l SUMS / 32, and FINAL of them).
TW_INLINE void addLanes(i32 (&v)[SUMS], int lane)
{
#pragma unroll
    for (int step = 0; step < 5; ++step) {
        int const d = 16 >> step, half = SUMS >> step + 1;
        if (half > 0) { // each lane of a pair gives the other its half
#pragma unroll
            for (int i = 0; i < half; ++i) {
                bool const upper = (lane & d) != 0;
                i32 const mine = upper ? v[i + half] : v[i], other = upper ? v[i] : v[i + half];
                v[i] = mine + __shfl_xor_sync(0xffffffffu, other, d);
            }
        } else {
            v[0] += __shfl_xor_sync(0xffffffffu, v[0], d);
        }
    }
}

TW_KERNEL __launch_bounds__(THREADS) gemv(const __grid_constant__ Args p)
{
    extern __shared__ __align__(16) u8 raw[];
    uint4* const as = reinterpret_cast<uint4*>(raw); // [m][units]
    int const tid = threadIdx.x, warp = tid / 32, lane = tid % 32, part = warp % WARPS_K;
    int const n0 = (blockIdx.x * GROUPS + warp / WARPS_K) * COLUMNS;
    uint4 const* columns[COLUMNS];
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j)
        columns[j] = reinterpret_cast<uint4 const*>(p.b + i64(min(n0 + j, p.n - 1)) * p.ldb);
    uint4 b[COLUMNS];
    int u = part * 32 + lane;
    auto takeB = [&] {
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j)
            b[j] = u < p.units ? __ldg(columns[j] + u) : make_uint4(0, 0, 0, 0);
    };
    if constexpr (EARLY)
        takeB();
    waitForPrevious();
    releaseDependents();
    if constexpr (!EARLY)
        takeB();
    if constexpr (PACKS) { // rows of a are whole units
        for (int i = tid; i < p.m * p.units; i += THREADS) {
            int const row = i / p.units;
            as[i] = *reinterpret_cast<uint4 const*>(p.a + row * p.lda + (i - row * p.units) * 16);
        }
    } else {
        int const width = p.units * 16;
        for (int i = tid; i < p.m * width; i += THREADS) {
            int const row = i / width, k = i - row * width;
            raw[i] = k < p.k ? u8(p.a[row * p.lda + k]) : u8(0);
        }
    }
    __syncthreads();
    i32 sum[SUMS];
#pragma unroll
    for (int i = 0; i < SUMS; ++i)
        sum[i] = 0;
#pragma unroll 1
    while (u < p.units) {
        uint4 now[COLUMNS];
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j)
            now[j] = b[j];
        int const at = u;
        u += WARPS_K * 32;
        takeB();
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
            if (r < p.m) {
                uint4 const a = as[r * p.units + at];
#pragma unroll
                for (int j = 0; j < COLUMNS; ++j)
                    sum[r * COLUMNS + j] = dot(a, now[j], sum[r * COLUMNS + j]);
            }
    }
    addLanes(sum, lane);
    if constexpr (WARPS_K > 1) {
        i32* const parts = reinterpret_cast<i32*>(raw) + warp * (FINAL * 32);
        __syncthreads(); // a was read
#pragma unroll
        for (int i = 0; i < FINAL; ++i)
            parts[lane * FINAL + i] = sum[i];
        __syncthreads();
        if (part > 0)
            return;
#pragma unroll
        for (int w = 1; w < WARPS_K; ++w)
#pragma unroll
            for (int i = 0; i < FINAL; ++i)
                sum[i] += parts[w * (FINAL * 32) + lane * FINAL + i];
    }
    constexpr int SHARERS = SUMS < 32 ? 32 / SUMS : 1; // lanes that have the same sum
    if (lane % SHARERS)
        return;
    EndNumbers const numbers = endNumbers(p.end);
#pragma unroll
    for (int i = 0; i < FINAL; ++i) {
        int const which = lane / SHARERS * FINAL + i, row = which / COLUMNS, n = n0 + which % COLUMNS;
        if (row >= p.m || n >= p.n)
            continue;
        i64 const at = i64(row) * p.n + n;
        EndResidual r = {};
        if constexpr (END_RESIDUAL)
            r = static_cast<EndResidual const*>(p.end.residual)[at];
        endStore(static_cast<EndElement*>(p.y) + at, endOf(sum[i], endScale(p.end, n), endBias(p.end, n), r, numbers),
                 p.end.table);
    }
}

} // namespace tw::cuda::gemv_i8
