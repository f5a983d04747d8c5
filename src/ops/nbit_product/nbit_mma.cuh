// SPDX-License-Identifier: Apache-2.0
// FP16 by mma.sync, d [16 columns, 8 rows] += w [16, 16] x [16, 8]: weights become FP16 in registers, x is read from where it lies.
// A block has 16 columns and TILES times 8 rows; its warps share k, and each takes 4 units of UNIT words in turn.
// In what order k comes does not matter, as long as both factors have the same: a thread's numbers of a word are q[i] and
// q[i + HALF] in one register, i < HALF, since so they lie in the word, 16 bits apart.
//   type S (scales, zeros); number kBits, TILES, WARPS, UNIT (divides a block's words)
#pragma once

#include "kernels/cuda/common/fragments.cuh"
#include "kernels/cuda/common/prelude.cuh"
#include "ops/nbit_product/nbit_product_params.h"

namespace tw::ops::nbit_product {

constexpr int PER = 32 / kBits, HALF = PER / 2;       // numbers of a word
constexpr int AT_ONCE = HALF < 4 ? HALF : 4;          // pairs in a load of up to 16 bytes
constexpr u32 ONES = 0x00010001U, BASE = 0x64006400U; // twice 1024 in FP16, whose last bit is 1

TW_INLINE u32 minus(u32 a, u32 b)
{
    u32 y;
    asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
    return y;
}
TW_INLINE u32 times(u32 a, u32 b)
{
    u32 y;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
    return y;
}
TW_INLINE u32 twice(float v)
{
    return u32(store<f16>(v).bits) * ONES;
}

// What makes weights of a unit's integers.
struct Steps
{
    u32 scale = 0, zero = 0;
    bool hasZero = false;

    TW_INLINE u32 weights(u32 word, int i) const // i and i + HALF
    {
        u32 const q = word >> (i * kBits) & ((1U << kBits) - 1) * ONES | BASE;
        // Exact: FP16 has all integers up to 2048.
        u32 const v = hasZero ? minus(minus(q, BASE), zero) : minus(q, BASE + (1U << (kBits - 1)) * ONES);
        return times(v, scale);
    }
};

TW_KERNEL __launch_bounds__(WARPS * 32) products(const __grid_constant__ Params p)
{
    __shared__ float shared[WARPS][TILES * 4][32];
    waitForPrevious();
    releaseDependents();
    int const warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, quarter = lane % 4;
    u32 const n = u32(p.n), k = u32(p.k), blocks = u32(p.blocks), rows = u32(p.rows);
    u32 const rowWords = blocks * u32(p.words), units = rowWords / UNIT, unitsOfBlock = u32(p.words) / UNIT;
    u32 const n0 = blockIdx.x * 16, m0 = blockIdx.y * 8 * TILES;
    u64 const column[2] = {min(n0 + group, n - 1), min(n0 + group + 8, n - 1)};
    f16 const* x[TILES];
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile)
        x[tile] = static_cast<f16 const*>(p.x) + u64(min(m0 + tile * 8 + group, rows - 1)) * k;
    float sum[TILES][4] = {};
    for (u32 at = warp * 4; at < units; at += WARPS * 4) { // the same for all lanes
        u32 const u = at + quarter;
        bool const isInside = u < units;
        Pack<u32, UNIT> words[2] = {};
        Steps steps[2];
#pragma unroll
        for (int c = 0; c < 2 && isInside; ++c) {
            words[c] = reinterpret_cast<Pack<u32, UNIT> const*>(p.w + column[c] * rowWords)[u];
            u64 const block = column[c] * blocks + u / unitsOfBlock;
            steps[c].scale = twice(load<float>(static_cast<S const*>(p.scales)[block]));
            steps[c].hasZero = p.zeros != nullptr;
            if (p.zeros)
                steps[c].zero = twice(load<float>(static_cast<S const*>(p.zeros)[block]));
        }
#pragma unroll
        for (int i = 0; i < UNIT; ++i) {
            u32 const from = (u * UNIT + i) * PER;
            u32 a[HALF][2];
#pragma unroll
            for (int j = 0; j < HALF; ++j)
#pragma unroll
                for (int c = 0; c < 2; ++c)
                    a[j][c] = steps[c].weights(words[c].v[i], j);
#pragma unroll
            for (int tile = 0; tile < TILES; ++tile) {
                Pack<u32, AT_ONCE> numbers[HALF / AT_ONCE] = {}; // pairs of neighbours
#pragma unroll
                for (int j = 0; j < HALF / AT_ONCE; ++j)
                    if (isInside && from < k) // k is a multiple of PER
                        numbers[j] = reinterpret_cast<Pack<u32, AT_ONCE> const*>(x[tile] + from)[j];
                auto const pairAt = [&](int j) { return numbers[j / AT_ONCE].v[j % AT_ONCE]; };
                u32 b[HALF];
#pragma unroll
                for (int j = 0; j < HALF; ++j)
                    b[j] = __byte_perm(pairAt(j / 2), pairAt((j + HALF) / 2), j % 2 ? 0x7632 : 0x5410);
#pragma unroll
                for (int j = 0; j < HALF; j += 2) {
                    u32 const w[4] = {a[j][0], a[j][1], a[j + 1][0], a[j + 1][1]};
                    mma(sum[tile], w, b[j], b[j + 1]);
                }
            }
        }
    }
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile)
#pragma unroll
        for (int i = 0; i < 4; ++i)
            shared[warp][tile * 4 + i][lane] = sum[tile][i];
    __syncthreads();
    for (int at = threadIdx.x; at < TILES * 4 * 32; at += WARPS * 32) {
        int const of = at % 32, i = at / 32 % 4, tile = at / 128;
        u32 const j = n0 + of / 4 + (i / 2) * 8, row = m0 + tile * 8 + of % 4 * 2 + i % 2;
        if (j >= n || row >= rows)
            continue;
        float v = p.bias ? load<float>(static_cast<f16 const*>(p.bias)[j]) : 0.F;
#pragma unroll
        for (int w = 0; w < WARPS; ++w)
            v += shared[w][tile * 4 + i][of];
        static_cast<f16*>(p.y)[u64(row) * n + j] = store<f16>(v);
    }
}

} // namespace tw::ops::nbit_product
