// SPDX-License-Identifier: Apache-2.0
// Products of few rows of halves with a matrix that is read once, in FP32. Threads hold what they read first before they wait for the
// kernel in front, so that weights come in while it runs. After epilogueConstants() with CHUNK 8 and `float activateGate(float)`:
//   int ROWS (at least m), COLUMNS, WARPS, SPLIT, DEPTH, BLOCK_COLUMNS; bool ALONG_K, PACKS, GATED, GATE_BIAS
// ALONG_K: b [n, k], each warp has COLUMNS columns, whose lanes take 8 of k in turn. Else b [k, n]: a block has COLUMNS columns, 8 for
// each lane, whose rows of b warps and SPLIT blocks of a cluster share. Gated as in wgmma_gate.cuh.
#pragma once

#include "kernels/cuda/common/clusters.cuh"
#include "kernels/cuda/common/epilogue.cuh"
#include "kernels/cuda/gemm/mma_params.h"

namespace tw::cuda::gemv_f16 {

using Args = ArgsOf<Narrow>;
constexpr int THREADS = WARPS * 32;
constexpr int OUTPUTS = GATED ? BLOCK_COLUMNS / 2 : BLOCK_COLUMNS; // of a row that leave a block

TW_INLINE Unit unitAt(Narrow const* at, bool valid)
{
    Unit u = {};
    if (valid)
        asm volatile("ld.global.nc.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(u.v[0]), "=r"(u.v[1]), "=r"(u.v[2]), "=r"(u.v[3])
                     : "l"(at));
    return u;
}
// Rows of a in shared memory, zeros behind k and m.
TW_INLINE void stage(Args const& p, Narrow* xs)
{
    int const width = p.units * 8;
    if constexpr (PACKS) {
        for (int i = threadIdx.x; i < ROWS * p.units; i += THREADS) {
            int const row = i / p.units, u = i - row * p.units;
            Unit x = {};
            if (row < p.m)
                x = *reinterpret_cast<Unit const*>(p.a + i64(row) * p.lda + u * 8);
            reinterpret_cast<Unit*>(xs)[i] = x;
        }
    } else {
        for (int i = threadIdx.x; i < ROWS * width; i += THREADS) {
            int const row = i / width, k = i - row * width;
            xs[i].bits = row < p.m && k < p.k ? p.a[i64(row) * p.lda + k].bits : u16(0);
        }
    }
}
// Adds up over lanes that are FIRST, FIRST / 2, ... LAST apart. While there are several numbers a lane keeps half of them: which is
// what partOf() tells.
template <int N, int FIRST, int LAST>
TW_INLINE void addLanes(float (&v)[N], int lane)
{
#pragma unroll
    for (int d = FIRST, count = N; d >= LAST; d /= 2) {
        bool const upper = (lane & d) != 0;
        if (count > 1) {
            count /= 2;
#pragma unroll
            for (int i = 0; i < N / 2; ++i)
                if (i < count) {
                    float const mine = upper ? v[i + count] : v[i], other = upper ? v[i] : v[i + count];
                    v[i] = mine + __shfl_xor_sync(~0u, other, d);
                }
        } else {
            v[0] += __shfl_xor_sync(~0u, v[0], d);
        }
    }
}
template <int N, int FIRST, int LAST>
TW_INLINE int partOf(int lane)
{
    int at = 0;
#pragma unroll
    for (int d = FIRST, count = N; d >= LAST && count > 1; d /= 2) {
        count /= 2;
        at += (lane & d) != 0 ? count : 0;
    }
    return at;
}
TW_INLINE constexpr int leftOf(int n, int steps)
{
    return steps == 0 || n == 1 ? n : leftOf(n / 2, steps - 1);
}

// Sums of this block's part of k, [ROWS][BLOCK_COLUMNS], `sums` of each warp behind each other where warps share k.
TW_INLINE void multiplyColumns(Args const& p, Narrow const* xs, float* sums, int block, int rank)
{
    constexpr int LANES = ALONG_K ? 4 : COLUMNS / 8, STEP = WARPS * 32 / LANES,
                  LEFT = leftOf(8, LANES == 2   ? 4
                                   : LANES == 4 ? 3
                                                : 2);
    int const warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int const each = (p.k + SPLIT - 1) / SPLIT, end = min(p.k, (rank + 1) * each);
    int const column = block * COLUMNS + lane % LANES * 8, columns = GATED ? p.n * 2 : p.n;
    bool const valid = column < columns;
    int row = rank * each + warp * (32 / LANES) + lane / LANES;
    Narrow const* at = p.b + i64(row) * p.ldb + column;
    i64 const step = i64(STEP) * p.ldb;
    Unit b[DEPTH];
#pragma unroll
    for (int i = 0; i < DEPTH; ++i)
        b[i] = unitAt(at + i * step, valid && row + i * STEP < end);
    waitForPrevious();
    releaseDependents();
    stage(p, const_cast<Narrow*>(xs));
    __syncthreads();
    float acc[ROWS][8] = {};
    int const width = p.units * 8;
    for (; row < end; row += DEPTH * STEP, at += DEPTH * step) {
#pragma unroll
        for (int i = 0; i < DEPTH; ++i) {
            Unit const now = b[i];
            int const k = row + i * STEP;
            b[i] = unitAt(at + (DEPTH + i) * step, valid && k + DEPTH * STEP < end);
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                float const x = halfToFloat(xs[r * width + min(k, end - 1)]); // behind the end b is zero
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    acc[r][2 * j] = fmaf(x, lowHalf(now.v[j]), acc[r][2 * j]);
                    acc[r][2 * j + 1] = fmaf(x, highHalf(now.v[j]), acc[r][2 * j + 1]);
                }
            }
        }
    }
    int const first = lane % LANES * 8 + partOf<8, 16, LANES>(lane);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        addLanes<8, 16, LANES>(acc[r], lane);
        if (LEFT > 1 || LANES > 2 || (lane & 2) == 0) // of two lanes that have the same number one
#pragma unroll
            for (int i = 0; i < LEFT; ++i)
                sums[(warp * ROWS + r) * COLUMNS + first + i] = acc[r][i];
    }
}
TW_INLINE void multiplyAlongK(Args const& p, Narrow const* xs, float* sums, int block)
{
    constexpr int SUMS = ROWS * COLUMNS;
    int const warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int const first = warp * COLUMNS, columns = GATED ? p.n * 2 : p.n;
    Narrow const* at[COLUMNS];
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j)
        at[j] = p.b + i64(min(block * BLOCK_COLUMNS + first + j, columns - 1)) * p.ldb;
    int u = lane;
    Unit b[DEPTH][COLUMNS];
#pragma unroll
    for (int i = 0; i < DEPTH; ++i)
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j)
            b[i][j] = unitAt(at[j] + (u + i * 32) * 8, u + i * 32 < p.units);
    waitForPrevious();
    releaseDependents();
    stage(p, const_cast<Narrow*>(xs));
    __syncthreads();
    float acc[SUMS] = {};
    for (; u < p.units; u += DEPTH * 32) {
#pragma unroll
        for (int i = 0; i < DEPTH; ++i) {
            int const now = u + i * 32;
            float w[COLUMNS][8];
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j) {
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    w[j][2 * e] = lowHalf(b[i][j].v[e]);
                    w[j][2 * e + 1] = highHalf(b[i][j].v[e]);
                }
                b[i][j] = unitAt(at[j] + (now + DEPTH * 32) * 8, now + DEPTH * 32 < p.units);
            }
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                Unit const x = reinterpret_cast<Unit const*>(xs)[r * p.units + min(now, p.units - 1)];
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    float const low = lowHalf(x.v[e]), high = highHalf(x.v[e]);
#pragma unroll
                    for (int j = 0; j < COLUMNS; ++j)
                        acc[r * COLUMNS + j] =
                            fmaf(high, w[j][2 * e + 1], fmaf(low, w[j][2 * e], acc[r * COLUMNS + j]));
                }
            }
        }
    }
    addLanes<SUMS, 16, 1>(acc, lane);
    constexpr int SHARERS = SUMS < 32 ? 32 / SUMS : 1; // lanes that have the same number
    int const part = partOf<SUMS, 16, 1>(lane);
    if (lane % SHARERS == 0)
        sums[part / COLUMNS * BLOCK_COLUMNS + first + part % COLUMNS] = acc[0];
}

TW_KERNEL __launch_bounds__(THREADS) gemv(const __grid_constant__ Args p)
{
    extern __shared__ __align__(16) u8 raw[];
    Narrow* const xs = reinterpret_cast<Narrow*>(raw);
    float* const sums = reinterpret_cast<float*>(raw + ROWS * p.units * 16);
    int const rank = SPLIT > 1 ? int(blockIdx.x) % SPLIT : 0, block = int(blockIdx.x) / SPLIT, tid = threadIdx.x;
    // What this thread writes, if any.
    int const row = tid / OUTPUTS, of = tid % OUTPUTS, n = block * OUTPUTS + of;
    bool const writes = rank == 0 && row < p.m && row < ROWS && n < p.n;
    int const from = GATED ? of / 8 * 16 + of % 8 : of; // in the block's columns
    float bias = 0, gateBias = 0;
    if (writes) {
        if constexpr (BIAS)
            bias = p.bias[n];
        if constexpr (GATE_BIAS) {
            gateBias = p.bias[block * BLOCK_COLUMNS + from];
            bias = p.bias[block * BLOCK_COLUMNS + from + 8];
        }
    }
    if constexpr (ALONG_K)
        multiplyAlongK(p, xs, sums, block);
    else
        multiplyColumns(p, xs, sums, block, rank);
    float residual = 0;
    if constexpr (RESIDUAL)
        if (writes)
            residual = halfToFloat(p.residual[i64(row) * p.ldResidual + n]);
    __syncthreads();
    if constexpr (!ALONG_K) { // over the warps; each thread's own numbers
        constexpr int ALL = ROWS * COLUMNS;
        for (int i = tid; i < ALL; i += THREADS) {
            float sum = 0;
#pragma unroll
            for (int w = 0; w < WARPS; ++w)
                sum += sums[w * ALL + i];
            sums[i] = sum;
        }
        if constexpr (SPLIT > 1)
            clusterSync();
        else
            __syncthreads();
    }
    auto sumAt = [&](int column) {
        int const at = row * BLOCK_COLUMNS + column;
        if constexpr (SPLIT > 1) {
            u32 const shared = u32(__cvta_generic_to_shared(sums + at));
            float sum = 0;
#pragma unroll
            for (int b = 0; b < SPLIT; ++b) {
                float v;
                asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(addressAt(shared, b)) : "memory");
                sum += v;
            }
            return sum;
        } else {
            return sums[at];
        }
    };
    if (writes) {
        float v = sumAt(GATED ? from + 8 : from) + bias;
        if constexpr (GATED)
            v *= activateGate(sumAt(from) + gateBias);
        p.y[i64(row) * p.ldy + n].bits = u16(packHalves(epilogue(v, residual), 0));
    }
    if constexpr (SPLIT > 1) {
        __syncwarp();
        clusterSync(); // nobody leaves while others read
    }
}

} // namespace tw::cuda::gemv_f16
