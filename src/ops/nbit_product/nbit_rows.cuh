// SPDX-License-Identifier: Apache-2.0
// Few rows of any floats, in FP32: a warp for COLUMNS columns, whose lanes take UNIT words of them in turn.
//   type T (x, bias, y), S (scales, zeros); number kBits, ROWS (at least those of x), COLUMNS, UNIT (divides a block's words);
//   bool PACKS (k is a multiple of 4, x aligned to as many)
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "ops/nbit_product/nbit_product_params.h"

namespace tw::ops::nbit_product {

constexpr int PER = 32 / kBits; // numbers of a word

TW_INLINE float wholeOf(u32 q) // below 2^23
{
    return __uint_as_float(0x4b000000U | q) - 8388608.F;
}

// Numbers [k, k + PER) of a row of x, 0 behind its end.
TW_INLINE void take(float (&to)[PER], T const* x, u32 k, u32 end)
{
    if constexpr (PACKS) {
#pragma unroll
        for (int i = 0; i < PER; i += 4)
            if (k + i < end) {
                Pack<T, 4> const four = *reinterpret_cast<Pack<T, 4> const*>(x + k + i);
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    to[i + j] = load<float>(four.v[j]);
            } else {
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    to[i + j] = 0;
            }
    } else {
#pragma unroll
        for (int i = 0; i < PER; ++i)
            to[i] = k + i < end ? load<float>(x[k + i]) : 0.F;
    }
}

TW_KERNEL rows(const __grid_constant__ Params p)
{
    waitForPrevious();
    releaseDependents();
    u32 const lane = threadIdx.x % 32, n = u32(p.n), k = u32(p.k), blocks = u32(p.blocks);
    u32 const first = (blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32) * COLUMNS;
    if (first >= n)
        return;
    u32 const rowWords = blocks * u32(p.words), units = rowWords / UNIT, unitsOfBlock = u32(p.words) / UNIT;
    Pack<u32, UNIT> const* w[COLUMNS];
    u64 scales[COLUMNS];
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c) {
        u64 const j = first + c < n ? first + c : n - 1;
        w[c] = reinterpret_cast<Pack<u32, UNIT> const*>(p.w + j * rowWords);
        scales[c] = j * blocks;
    }
    float sum[ROWS][COLUMNS] = {};
    for (u32 u = lane; u < units; u += 32) {
        u32 const block = u / unitsOfBlock;
        Pack<u32, UNIT> words[COLUMNS];
        float part[ROWS][COLUMNS] = {}, ofX[ROWS] = {};
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c)
            words[c] = w[c][u];
#pragma unroll
        for (int i = 0; i < UNIT; ++i)
#pragma unroll
            for (int r = 0; r < ROWS; ++r) {
                float x[PER];
                u64 const row = r < p.rows ? r : 0;
                take(x, static_cast<T const*>(p.x) + row * k, (u * UNIT + i) * PER, k);
#pragma unroll
                for (int e = 0; e < PER; ++e) {
                    ofX[r] += x[e];
#pragma unroll
                    for (int c = 0; c < COLUMNS; ++c)
                        part[r][c] += x[e] * wholeOf(words[c].v[i] >> (e * kBits) & ((1U << kBits) - 1));
                }
            }
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) {
            float const scale = load<float>(static_cast<S const*>(p.scales)[scales[c] + block]);
            float const zero =
                p.zeros ? load<float>(static_cast<S const*>(p.zeros)[scales[c] + block]) : float(1 << (kBits - 1));
#pragma unroll
            for (int r = 0; r < ROWS; ++r)
                sum[r][c] += scale * (part[r][c] - zero * ofX[r]);
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) {
            float v = sum[r][c];
            for (int apart = 16; apart > 0; apart /= 2)
                v += __shfl_xor_sync(0xffffffffU, v, apart);
            if (lane == 0 && r < p.rows && first + c < n)
                static_cast<T*>(p.y)[u64(r) * n + first + c] =
                    store<T>(v + (p.bias ? load<float>(static_cast<T const*>(p.bias)[first + c]) : 0.F));
        }
}

} // namespace tw::ops::nbit_product
