// SPDX-License-Identifier: Apache-2.0
// LayerNorm of a product's rows.
#pragma once

#include "kernels/cuda/gemm/wgmma_tiles.cuh"

namespace tw::cuda::gemm_f16 {

// NORM blocks, neighbours, have a tile's rows among them, TILE_Q columns each. Every block makes mean and sum of squared
// differences of its part of each row and writes both as one number of 8 bytes to [block][row] in memory, which was all
// ones before: who reads something else has all of it. Blocks of one unit have numbers that follow each other and begin
// in that order; only the last ones may have to wait for others to begin, which end without them.
constexpr u64 NOTHING = ~u64(0);
constexpr u32 MOST_TRIES = 1u << 26; // half a minute: an error, not a kernel that never ends
TW_INLINE void storePart(u64* at, float mean, float squares)
{
    u64 v;
    asm("mov.b64 %0, {%1, %2};" : "=l"(v) : "f"(mean), "f"(squares));
    if (v == NOTHING)
        v = NOTHING >> 1; // NaNs too, but others
    asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(at), "l"(v) : "memory");
}
TW_INLINE u64 loadPart(u64 const* at)
{
    u64 v;
    asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(v) : "l"(at) : "memory");
    return v;
}
// Four lanes hold a row's numbers.
TW_INLINE float quadSum(float v)
{
    v += __shfl_xor_sync(0xffffffff, v, 1);
    return v + __shfl_xor_sync(0xffffffff, v, 2);
}
// `columns`: bias, gamma and beta of this block's columns.
template <class V, int N>
TW_INLINE void normRows(TensorMap const* map, Norm const& norm, V (&v)[BLOCKS][N], int row0, int column0, int batch,
                        u32 stage, u32 columns, int rank, int lane)
{
    constexpr int CHUNKS = TILE_Q / CHUNK;
    int const t = lane % 4;
    u32 const rowAt = (lane / 8 % 2 * 8 + lane % 8) * 128; // as copyRows() has it
    float mean[BLOCKS][2];
#pragma unroll
    for (int b = 0; b < BLOCKS; ++b) {
        float sum[2] = {}, squares[2] = {};
#pragma unroll
        for (int chunk = 0; chunk < CHUNKS; ++chunk)
#pragma unroll
            for (int u = 0; u < UNITS; u += 2) {
                u32 add[4];
                if constexpr (RESIDUAL)
                    loadMatrix4(add,
                                stage + (b * CHUNKS + chunk) * CHUNK_BYTES + rowAt + ((u + lane / 16) ^ lane % 8) * 16);
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    int const j = chunk * UNITS + u + i;
                    float b0 = 0, b1 = 0;
                    if constexpr (BIAS)
                        loadShared(columns + (j * 8 + t * 2) * 4, b0, b1);
#pragma unroll
                    for (int h = 0; h < 2; ++h) {
                        float x0 = v[b][j * 4 + h * 2] + b0, x1 = v[b][j * 4 + h * 2 + 1] + b1;
                        float r0 = 0, r1 = 0;
                        if constexpr (RESIDUAL) {
                            r0 = lowHalf(add[i * 2 + h]);
                            r1 = highHalf(add[i * 2 + h]);
                        }
                        x0 = epilogue(x0, r0);
                        x1 = epilogue(x1, r1);
                        sum[h] += x0 + x1;
                        v[b][j * 4 + h * 2] = x0;
                        v[b][j * 4 + h * 2 + 1] = x1;
                    }
                }
            }
#pragma unroll
        for (int h = 0; h < 2; ++h)
            mean[b][h] = quadSum(sum[h]) * (1.0f / TILE_Q);
#pragma unroll
        for (int j = 0; j < TILE_Q / 8; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                float& x = v[b][j * 4 + e];
                x -= mean[b][e / 2];
                squares[e / 2] += x * x;
            }
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            squares[h] = quadSum(squares[h]);
            if (t == 0)
                storePart(norm.parts + i64(rank) * norm.rows + row0 + b * 64 + lane / 4 + h * 8, mean[b][h],
                          squares[h]);
        }
    }
#pragma unroll
    for (int b = 0; b < BLOCKS; ++b) {
        // Each of the four lanes takes some blocks' parts; all are on their way at once.
        constexpr int EACH = (NORM + 3) / 4;
        u64 const* const from = norm.parts + row0 + b * 64 + lane / 4 + i64(t) * norm.rows;
        u64 parts[2][EACH];
#pragma unroll
        for (int h = 0; h < 2; ++h)
#pragma unroll
            for (int i = 0; i < EACH; ++i)
                parts[h][i] = NORM % 4 == 0 || i * 4 + t < NORM ? loadPart(from + i * 4 * i64(norm.rows) + h * 8) : 0;
        float scale[2], shift[2];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            float means[EACH], whole = 0, squares = 0;
#pragma unroll
            for (int i = 0; i < EACH; ++i) {
                u64& part = parts[h][i];
                for (u32 tries = 0; part == NOTHING; ++tries) {
                    if (tries == MOST_TRIES)
                        __trap();
                    part = loadPart(from + i * 4 * i64(norm.rows) + h * 8);
                }
                float square;
                asm("mov.b64 {%0, %1}, %2;" : "=f"(means[i]), "=f"(square) : "l"(part));
                whole += means[i];
                squares += square;
            }
            whole = quadSum(whole) * (1.0f / NORM);
#pragma unroll
            for (int i = 0; i < EACH; ++i)
                if (NORM % 4 == 0 || i * 4 + t < NORM)
                    squares += TILE_Q * (means[i] - whole) * (means[i] - whole);
            squares = quadSum(squares);
            scale[h] = rsqrtf(squares * (1.0f / (NORM * TILE_Q)) + norm.epsilon);
            shift[h] = (mean[b][h] - whole) * scale[h];
        }
#pragma unroll
        for (int chunk = 0; chunk < CHUNKS; ++chunk) {
            u32 const to = stage + (b * CHUNKS + chunk) * CHUNK_BYTES;
#pragma unroll
            for (int u = 0; u < UNITS; u += 2) {
                u32 out[4];
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    int const j = chunk * UNITS + u + i;
                    float g0, g1, b0, b1;
                    loadShared(columns + (TILE_Q + j * 8 + t * 2) * 4, g0, g1);
                    loadShared(columns + (2 * TILE_Q + j * 8 + t * 2) * 4, b0, b1);
#pragma unroll
                    for (int h = 0; h < 2; ++h)
                        out[i * 2 + h] = packHalves((v[b][j * 4 + h * 2] * scale[h] + shift[h]) * g0 + b0,
                                                    (v[b][j * 4 + h * 2 + 1] * scale[h] + shift[h]) * g1 + b1);
                }
                storeMatrix4(to + rowAt + ((u + lane / 16) ^ lane % 8) * 16, out);
            }
            sharedFence();
            __syncwarp();
            if (lane == 0) {
                storeTile(map, to, column0 + chunk * CHUNK, row0 + b * 64, batch);
                bulkCommit();
            }
        }
    }
}

} // namespace tw::cuda::gemm_f16
