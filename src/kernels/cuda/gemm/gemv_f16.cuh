// SPDX-License-Identifier: Apache-2.0
// Products of few rows of FP16 with a matrix whose columns are read once. A block has TILES tiles of 8 columns; its warps take steps of 32 numbers of k in turn.
// The order of a product's terms is free, so that a thread's part of a fragment is what 16 bytes of a row of a, or of a column of b, hold.
// Rows that are normalized first: b's columns are multiplied by them as they are, and
//   ((a - mean) scale) b = (a b - mean sums) scale   with scale = 1 / sqrt(variance + epsilon), sums[n]: of b's column n.
// GATED: columns come in groups of 16, 8 gates and the 8 columns that they let through. After epilogueFunction() and activateGate().
//   int ROWS (8 or 16, at least m), TILES, WARPS, UNITS (that a thread has of a column at once), FIRST_NORM (0: none, 1: LayerNorm, 2: the mean counts as 0);
//   bool GATED, BIAS, RESIDUAL
#pragma once

#include "kernels/cuda/common/matrix.cuh"
#include "kernels/cuda/gemm/mma_params.h"

namespace tw::cuda::gemv_f16 {

using Args = ArgsOf<Narrow>;

constexpr int COLUMNS = TILES * 8, THREADS = WARPS * 32, STEP = 32;
constexpr int CHAINS = 4 / TILES;   // sums of a tile, so that a product need not wait for the one before
constexpr int ENDS = GATED ? 2 : 1; // sums of a number of y
constexpr int RESULTS = COLUMNS / ENDS;
static_assert(THREADS % RESULTS == 0, "a thread's results are of one column");

// Of a row: how many numbers lie how far from `pivot`, one of their kind, since sums of squares alone lose what rows have that lie far from 0.
struct Spread
{
    float sum = 0, squares = 0;
    TW_INLINE void add(u32 pair, float pivot)
    {
        float const low = lowHalf(pair) - pivot, high = highHalf(pair) - pivot;
        sum += low + high;
        squares += low * low + high * high;
    }
};

TW_INLINE float pivotOf(Unit const& first)
{
    if constexpr (FIRST_NORM == 2)
        return 0;
    float sum = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i)
        sum += lowHalf(first.v[i]) + highHalf(first.v[i]);
    return sum / 8;
}
// Of the units that a warp takes of a row; `own`: this thread's first one.
TW_INLINE Spread spreadOf(Unit const* row, Unit const& own, float pivot, int units)
{
    Spread s;
    Unit x = own;
#pragma unroll 1
    for (int u = threadIdx.x; u < units;) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            s.add(x.v[i], pivot);
        if ((u += THREADS) < units)
            x = row[u];
    }
#pragma unroll
    for (int d = 16; d > 0; d /= 2) {
        s.sum += __shfl_xor_sync(~0u, s.sum, d);
        s.squares += __shfl_xor_sync(~0u, s.squares, d);
    }
    return s;
}

TW_KERNEL __launch_bounds__(THREADS) gemv(const __grid_constant__ Args p)
{
    __shared__ float parts[WARPS][ROWS][COLUMNS];
    __shared__ float2 spreads[FIRST_NORM ? WARPS : 1][ROWS];
    int const warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    int const n0 = blockIdx.x * COLUMNS, steps = (p.k + STEP - 1) / STEP;
    Narrow const* columns[TILES];
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile)
        columns[tile] = p.b + i64(min(n0 + tile * 8 + g, p.n - 1)) * p.ldb + t * 8;
    Unit b[UNITS][TILES];
    auto unitAt = [&](Narrow const* row, int step) { // zeros behind k
        return step * STEP + t * 8 < p.k ? *reinterpret_cast<Unit const*>(row + step * STEP) : Unit{};
    };
    auto take = [&](int u, int step) {
#pragma unroll
        for (int tile = 0; tile < TILES; ++tile)
            b[u][tile] = unitAt(columns[tile], step);
    };
#pragma unroll
    for (int u = 0; u < UNITS; ++u)
        take(u, u * WARPS + warp);
    // The column of this thread's results, and the first of its sums.
    int const result = threadIdx.x % RESULTS, column = GATED ? result / 8 * 16 + result % 8 : result;
    int const y = blockIdx.x * RESULTS + result;
    bool const isColumn = n0 + column < p.n; // with those that a gate lets through
    float bias[ENDS] = {}, columnSums[ENDS] = {};
#pragma unroll
    for (int e = 0; e < ENDS && isColumn; ++e) {
        if constexpr (BIAS)
            bias[e] = p.bias[n0 + column + e * 8];
        if constexpr (FIRST_NORM == 1)
            columnSums[e] = p.sums[n0 + column + e * 8];
    }
    releaseDependents();
    waitForPrevious();
    int const ownRow = threadIdx.x / RESULTS;
    Narrow ownResidual = {};
    if constexpr (RESIDUAL)
        if (ownRow < p.m && isColumn)
            ownResidual = p.residual[ownRow * p.ldResidual + y];
    // What measures row 0 is on its way before the product waits.
    auto rowAt = [&](int r) { return reinterpret_cast<Unit const*>(p.a + r * p.lda); };
    int const units = p.k / 8;
    Unit measured = {}, begin = {}, ownFirst = {};
    if constexpr (FIRST_NORM > 0) {
        if (int(threadIdx.x) < units)
            measured = rowAt(0)[threadIdx.x];
        begin = *rowAt(0);
        ownFirst = *rowAt(min(ownRow, p.m - 1));
    }
    bool const isRow[2] = {p.m > g, ROWS > 8 && p.m > g + 8};
    Narrow const* const row = p.a + (isRow[0] ? g : 0) * p.lda + t * 8;
    float sum[CHAINS][TILES][4] = {};
#pragma unroll 1
    for (int first = warp; first < steps; first += UNITS * WARPS) {
        Unit x[UNITS][ROWS / 8];
#pragma unroll
        for (int u = 0; u < UNITS; ++u)
#pragma unroll
            for (int h = 0; h < ROWS / 8; ++h)
                x[u][h] = isRow[h] ? unitAt(row + h * 8 * p.lda, first + u * WARPS) : Unit{};
#pragma unroll
        for (int u = 0; u < UNITS; ++u) {
#pragma unroll
            for (int i = 0; i < 4; i += 2) {
                u32 const a[4] = {x[u][0].v[i], ROWS > 8 ? x[u][ROWS / 8 - 1].v[i] : 0, x[u][0].v[i + 1],
                                  ROWS > 8 ? x[u][ROWS / 8 - 1].v[i + 1] : 0};
#pragma unroll
                for (int tile = 0; tile < TILES; ++tile)
                    mma(sum[(u * 2 + i / 2) % CHAINS][tile], a, b[u][tile].v[i], b[u][tile].v[i + 1]);
            }
            if (first + UNITS * WARPS < steps)
                take(u, first + (UNITS + u) * WARPS);
        }
    }
    if constexpr (FIRST_NORM > 0)
        for (int r = 0; r < p.m; ++r) {
            if (r > 0) {
                begin = *rowAt(r);
                measured = int(threadIdx.x) < units ? rowAt(r)[threadIdx.x] : Unit{};
            }
            Spread const s = spreadOf(rowAt(r), measured, pivotOf(begin), units);
            if (lane == 0)
                spreads[warp][r] = make_float2(s.sum, s.squares);
        }
#pragma unroll
    for (int chain = 1; chain < CHAINS; ++chain)
#pragma unroll
        for (int tile = 0; tile < TILES; ++tile)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                sum[0][tile][e] += sum[chain][tile][e];
#pragma unroll
    for (int h = 0; h < ROWS / 8; ++h)
        if (isRow[h])
#pragma unroll
            for (int tile = 0; tile < TILES; ++tile)
                *reinterpret_cast<float2*>(&parts[warp][g + h * 8][tile * 8 + t * 2]) =
                    make_float2(sum[0][tile][h * 2], sum[0][tile][h * 2 + 1]);
    __syncthreads();
    if (!isColumn)
        return;
    for (int r = ownRow; r < p.m; r += THREADS / RESULTS) {
        float v[ENDS] = {};
#pragma unroll
        for (int w = 0; w < WARPS; ++w)
#pragma unroll
            for (int e = 0; e < ENDS; ++e)
                v[e] += parts[w][r][column + e * 8];
        if constexpr (FIRST_NORM > 0) {
            float part = 0, squares = 0;
#pragma unroll
            for (int w = 0; w < WARPS; ++w) {
                part += spreads[w][r].x;
                squares += spreads[w][r].y;
            }
            float const away = FIRST_NORM == 1 ? part / float(p.k) : 0; // the mean, from the pivot
            float const mean = FIRST_NORM == 1 ? away + pivotOf(r == ownRow ? ownFirst : *rowAt(r)) : 0;
            float const scale = rsqrtf(fmaxf(squares / float(p.k) - away * away, 0) + p.epsilon);
#pragma unroll
            for (int e = 0; e < ENDS; ++e)
                v[e] = (v[e] - mean * columnSums[e]) * scale;
        }
        float residual = 0, end = 0;
        if constexpr (RESIDUAL)
            residual = halfToFloat(r == ownRow ? ownResidual : p.residual[r * p.ldResidual + y]);
        if constexpr (GATED)
            end = activateGate(v[0] + bias[0]) * (v[ENDS - 1] + bias[ENDS - 1]);
        else
            end = epilogue(v[0] + bias[0], residual);
        p.y[r * p.ldy + y].bits = u16(packHalves(end, 0));
    }
}

} // namespace tw::cuda::gemv_f16
