// SPDX-License-Identifier: Apache-2.0
// A block copies ROWS rows, together whole packs, to shared memory and back; LANES threads have the words of one row in
// registers. Rows of an odd number of halves share words with their neighbours: what is not theirs counts as -inf.
//   type T; int N: elements of a row; int LANES; int THREADS: of a block
#pragma once

#include "kernels/cuda/common/async_copies.cuh"
#include "kernels/cuda/common/prelude.cuh"
#include "ops/softmax/softmax_params.h"

namespace tw::ops::softmax {

constexpr int ROWS = THREADS / LANES, PER = 4 / int(sizeof(T)), V = 16 / int(sizeof(T));
constexpr int WORDS = (N + PER - 1) / PER, EACH = (WORDS + LANES - 1) / LANES;
constexpr bool HALVES = PER == 2, ODD = N % PER != 0;
constexpr u32 LOWEST = HALVES ? lowestPair(Narrow{}) : 0xFF800000u;
TW_INLINE float halfOf(u32 v)
{
    Narrow h;
    h.bits = u16(v);
    return halfToFloat(h);
}
TW_INLINE u32 larger(u32 a, u32 b) // of each half; NaN shows in the sums
{
    u32 v;
    if (HALVES)
        asm("max." TW_NARROW_PTX "x2 %0, %1, %2;" : "=r"(v) : "r"(a), "r"(b));
    else
        v = __float_as_uint(fmaxf(__uint_as_float(a), __uint_as_float(b)));
    return v;
}
TW_INLINE float powerOf2(float v)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(v));
    return y;
}
TW_KERNEL __launch_bounds__(THREADS) softmax_short_rows(const __grid_constant__ ShortRowsParams p)
{
    __shared__ alignas(16) u32 data[ROWS * N / PER];
    waitForPrevious();
    releaseDependents();
    i64 const row0 = i64(blockIdx.x) * ROWS;
    int const rows = int(min(i64(ROWS), i64(p.rows) - row0)), elements = rows * N, packed = elements / V * V;
    T const* const x = static_cast<T const*>(p.x) + row0 * N;
    T* const y = static_cast<T*>(p.y) + row0 * N;
    T* const all = reinterpret_cast<T*>(data);
#pragma unroll 4
    for (int k = threadIdx.x * V; k < packed; k += THREADS * V)
        copyAsync16(sharedAddress(all + k), x + k, true);
    copyCommit();
#pragma unroll 1
    for (int k = packed + threadIdx.x; k < elements; k += THREADS)
        all[k] = x[k];
    copyWait<0>();
    __syncthreads();
    int const lane = threadIdx.x % LANES, r = threadIdx.x / LANES, first = r * N / PER;
    u32* const row = data + first;
    bool const startsLate = ODD && r % 2 != 0; // within a word
    u32 u[EACH], m2 = LOWEST;
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
        int const k = i * LANES + lane;
        u[i] = LOWEST;
        if ((i + 1) * LANES <= WORDS || k < WORDS)
            u[i] = row[k];
        if (ODD && i == 0 && k == 0 && startsLate)
            u[i] = (u[i] & 0xFFFF0000u) | (LOWEST & 0xFFFFu);
        if (ODD && (i + 1) * LANES >= WORDS && k == WORDS - 1 && !startsLate)
            u[i] = (u[i] & 0xFFFFu) | (LOWEST & 0xFFFF0000u);
        m2 = larger(m2, u[i]);
    }
#pragma unroll
    for (int d = LANES / 2; d > 0; d /= 2)
        m2 = larger(m2, __shfl_xor_sync(~0u, m2, d));
    float v[EACH][PER], s = 0;
    float const m = HALVES ? fmaxf(halfOf(m2), halfOf(m2 >> 16)) : __uint_as_float(m2), shift = m * -1.44269504f;
#pragma unroll
    for (int i = 0; i < EACH; ++i)
#pragma unroll
        for (int j = 0; j < PER; ++j) {
            if (HALVES)
                v[i][j] = powerOf2(fmaf(halfOf(j ? u[i] >> 16 : u[i]), 1.44269504f, shift));
            else
                v[i][j] = exp(__uint_as_float(u[i]) - m);
            s += v[i][j];
        }
#pragma unroll
    for (int d = LANES / 2; d > 0; d /= 2)
        s += __shfl_xor_sync(~0u, s, d);
    s = 1 / s;
    if (ODD)
        __syncthreads(); // neighbours have read their words
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
        int const k = i * LANES + lane;
        if ((i + 1) * LANES > WORDS && k >= WORDS)
            continue;
        u32 word;
        if (HALVES)
            asm("cvt.rn." TW_NARROW_PTX "x2.f32 %0, %1, %2;" : "=r"(word) : "f"(v[i][PER - 1] * s), "f"(v[i][0] * s));
        else
            word = __float_as_uint(v[i][0] * s);
        if (ODD && i == 0 && k == 0 && startsLate)
            reinterpret_cast<u16*>(row + k)[1] = u16(word >> 16);
        else if (ODD && (i + 1) * LANES >= WORDS && k == WORDS - 1 && !startsLate)
            reinterpret_cast<u16*>(row + k)[0] = u16(word);
        else
            row[k] = word;
    }
    __syncthreads();
#pragma unroll 4
    for (int k = threadIdx.x * V; k < packed; k += THREADS * V)
        *reinterpret_cast<Pack<u32, 4>*>(y + k) = *reinterpret_cast<Pack<u32, 4> const*>(all + k);
#pragma unroll 1
    for (int k = packed + threadIdx.x; k < elements; k += THREADS)
        y[k] = all[k];
}

} // namespace tw::ops::softmax
