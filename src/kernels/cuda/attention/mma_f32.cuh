// SPDX-License-Identifier: Apache-2.0
// Attention of FP32 by mma.sync, 3xTF32 or rounded to TF32.
//   int HEAD, D (padded), VALUE, DV (padded), UNIT, WARPS, KEYS, BLOCKS, PARTS; bool TF32X3
#pragma once

#include "kernels/cuda/attention/mma_f32_sizes.cuh"
#include "kernels/cuda/attention/rows.cuh"
#include "kernels/cuda/attention/spans.cuh"
#include "kernels/cuda/common/factors.cuh"
#include "kernels/cuda/common/matrix.cuh"

namespace tw::cuda::attention_f32 {

TW_INLINE Factors<2> pairOf(float b0, float b1)
{
    Factors<2> b;
    b.set(0, b0);
    b.set(1, b1);
    return b;
}
TW_INLINE void takeQueries(Factors<4>& f, u32 at)
{
    float v[4];
    loadBlocks(v, at);
#pragma unroll
    for (int i = 0; i < 4; ++i)
        f.set(i, v[i]);
}

TW_KERNEL __launch_bounds__(THREADS, 1) attention(const __grid_constant__ Args a)
{
    extern __shared__ __align__(16) u8 raw[];
    u32 const sharedQ = sharedAddress(raw), sharedK = sharedQ + ROWS * PITCH, sharedV = sharedK + 2 * TILE_BYTES;
    int const part = threadIdx.x / (WARPS * 32), warp = threadIdx.x / 32 % WARPS, lane = threadIdx.x % 32, g = lane / 4,
              t = lane % 4;
    int const head = blockIdx.y, keyHead = head / a.headsPerKey, batch = blockIdx.z;
    float const* const q = a.q + batch * a.qStride.batch + head * a.qStride.head;
    float const* const k = a.k + batch * a.kStride.batch + keyHead * a.kStride.head;
    float const* const v = a.v + batch * a.vStride.batch + keyHead * a.vStride.head;
    Masks masks;
    releaseDependents();
    waitForPrevious();
    masks.at(a, batch, head);
    Span const span = spanOf<ROWS>(a);
    int const q0 = span.q0, qEnd = span.qEnd, from = span.from, end = span.end;
    if (SEGMENTS && q0 >= qEnd)
        return;
    int const row0 = q0 + warp * BLOCKS * 16 + g; // of this thread: row0, row0 + 8, ... of each block of 16
    masks.shift = span.shift;
    int const limit = CAUSAL ? max(min(end, q0 + ROWS + span.shift), 1) : end,
              steps = (limit - from + TILE_KEYS - 1) / TILE_KEYS;
    // The sums that weights are rounded by come of a walk of its own, unless one step holds all keys.
    int const walked = WEIGHT_STEPS && steps > 1 ? steps : 0, all = walked + steps;
    loadTile<ROWS, HEAD, D>(sharedQ, q, a.qStride.row, q0, qEnd);
    loadTile<TILE_KEYS, HEAD, D>(sharedK, k, a.kStride.row, from, end);
    copyCommit();
    if (walked == 0)
        loadTile<TILE_KEYS, VALUE, DV>(sharedV, v, a.vStride.row, from, end);
    copyCommit();

    u32 const qAt = sharedQ + (warp * BLOCKS * 16 + lane % 16) * PITCH + lane / 16 * 16;
    Factors<4> fragQ[KEEPS ? D / 8 : 1][BLOCKS];
    float out[BLOCKS][DV / 8][4] = {}, top[BLOCKS][2], sum[BLOCKS][2] = {};
#pragma unroll
    for (int r = 0; r < BLOCKS; ++r)
        top[r][0] = top[r][1] = -__int_as_float(0x7f800000);
    for (int step = 0; step < all; ++step) {
        int const tile0 = from + (step < walked ? step : step - walked) * TILE_KEYS,
                  key0 = tile0 + part * KEYS; // of this part
        int const next = step + 1 == walked ? from : tile0 + TILE_KEYS;
        masks.fetch(a, key0, t);
        copyWait<1>(); // the step's keys
        __syncthreads();
        if (step + 1 < all)
            loadTile<TILE_KEYS, HEAD, D>(sharedK + ((step + 1) & 1) * TILE_BYTES, k, a.kStride.row, next, end);
        copyCommit();
        if (KEEPS && step == 0) {
#pragma unroll
            for (int d = 0; d < D / 8; ++d)
#pragma unroll
                for (int r = 0; r < BLOCKS; ++r)
                    takeQueries(fragQ[KEEPS ? d : 0][r], qAt + r * 16 * PITCH + d * 32);
        }
        float s[BLOCKS][KEYS / 8][4] = {};
        u32 const kAt =
            sharedK + (step & 1) * TILE_BYTES + (part * KEYS + lane / 16 * 8 + lane % 8) * PITCH + lane / 8 % 2 * 16;
#pragma unroll
        for (int d = 0; d < D / 8; ++d) {
            if constexpr (!KEEPS)
#pragma unroll
                for (int r = 0; r < BLOCKS; ++r)
                    takeQueries(fragQ[0][r], qAt + r * 16 * PITCH + d * 32);
#pragma unroll
            for (int n = 0; n < KEYS / 16; ++n) {
                float b[4];
                loadBlocks(b, kAt + n * 16 * PITCH + d * 32);
                Factors<2> const b0 = pairOf(b[0], b[1]), b1 = pairOf(b[2], b[3]);
#pragma unroll
                for (int r = 0; r < BLOCKS; ++r) {
                    multiply(s[r][n * 2], fragQ[KEEPS ? d : 0][r], b0);
                    multiply(s[r][n * 2 + 1], fragQ[KEEPS ? d : 0][r], b1);
                }
            }
        }
        // Without masks the scores are scaled in the exponent; tops are of scaled scores.
        float const scale = MASKED ? 1 : a.scale;
#pragma unroll
        for (int r = 0; r < BLOCKS; ++r) {
            int const row = row0 + r * 16;
            if constexpr (MASKED) {
#pragma unroll
                for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                    for (int h = 0; h < 2; ++h)
                        masks.apply(a, row + h * 8, key0, n, t, s[r][n][h * 2], s[r][n][h * 2 + 1]);
            }
            if (hidesSome<ROWS>(a, span, key0, KEYS)) {
#pragma unroll
                for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                    for (int e = 0; e < 4; ++e) {
                        int const key = key0 + n * 8 + t * 2 + e % 2;
                        if (hides(a, span, row + e / 2 * 8, key))
                            s[r][n][e] = -__int_as_float(0x7f800000);
                    }
            }
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                float high = s[r][0][h * 2];
#pragma unroll
                for (int n = 0; n < KEYS / 8; ++n)
                    high = fmaxf(high, fmaxf(s[r][n][h * 2], s[r][n][h * 2 + 1]));
                high = fmaxf(top[r][h], quadMax(high) * scale);
                float const origin = high == -__int_as_float(0x7f800000) ? 0 : high,
                            shrink = exp2Of(top[r][h] - origin);
                top[r][h] = high;
                float weights = 0;
#pragma unroll
                for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                    for (int e = 0; e < 2; ++e) {
                        float& x = s[r][n][h * 2 + e];
                        x = exp2Of(MASKED ? x - origin : x * scale - origin);
                        weights += x;
                    }
                if (!WEIGHT_STEPS || walked == 0 || step < walked)
                    sum[r][h] = sum[r][h] * shrink + weights;
                if (WEIGHT_STEPS && step >= walked) {
                    float const inSteps = a.weightSteps / quadSum(sum[r][h]);
#pragma unroll
                    for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                        for (int e = 0; e < 2; ++e)
                            s[r][n][h * 2 + e] = wholeByte(s[r][n][h * 2 + e] * inSteps);
                }
#pragma unroll
                for (int d = 0; d < DV / 8; ++d) {
                    out[r][d][h * 2] *= shrink;
                    out[r][d][h * 2 + 1] *= shrink;
                }
            }
        }
        copyWait<1>(); // the step's values
        __syncthreads();
        if (step + 1 < all && step + 1 >= walked)
            loadTile<TILE_KEYS, VALUE, DV>(sharedV + ((step + 1) & 1) * TILE_BYTES, v, a.vStride.row, next, end);
        copyCommit();
        if (step < walked)
            continue;
        // A thread's weights are those of keys 2 t and 2 t + 1: these are numbers t and t + 4 of what is summed.
        u32 const vAt = sharedV + (step & 1) * TILE_BYTES + (part * KEYS + t * 2) * PITCH + g * 4;
#pragma unroll
        for (int d0 = 0; d0 < DV / 8; d0 += COLUMNS) {
            float late[TF32X3 ? BLOCKS : 1][TF32X3 ? COLUMNS : 1][4] = {}; // tensor cores cut off what long sums lose
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n) {
                Factors<4> p[BLOCKS];
#pragma unroll
                for (int r = 0; r < BLOCKS; ++r)
#pragma unroll
                    for (int e = 0; e < 4; ++e)
                        p[r].set(e, s[r][n][e % 2 * 2 + e / 2]);
#pragma unroll
                for (int d = 0; d < COLUMNS; ++d) {
                    if (d0 + d >= DV / 8)
                        continue;
                    u32 const at = vAt + n * 8 * PITCH + (d0 + d) * 32;
                    Factors<2> const b =
                        pairOf(__uint_as_float(loadShared(at)), __uint_as_float(loadShared(at + PITCH)));
#pragma unroll
                    for (int r = 0; r < BLOCKS; ++r) {
                        if constexpr (TF32X3)
                            multiply(late[r][d], p[r], b);
                        else
                            multiply(out[r][d0 + d], p[r], b);
                    }
                }
            }
            if constexpr (TF32X3) {
#pragma unroll
                for (int r = 0; r < BLOCKS; ++r)
#pragma unroll
                    for (int d = 0; d < COLUMNS; ++d)
#pragma unroll
                        for (int e = 0; e < 4; ++e)
                            if (d0 + d < DV / 8)
                                out[r][d0 + d][e] += late[r][d][e];
            }
        }
    }
    copyWait<0>();
    if constexpr (PARTS > 1) {
        // The first part adds what the others have: sums and results in units of their own tops.
        constexpr int EACH = BLOCKS * (DV / 2 + 4);
        float* const shared = reinterpret_cast<float*>(raw) + warp * 32 + lane; // [part - 1][EACH][thread of a part]
        __syncthreads();                                                        // tiles are read
        if (part > 0) {
            float* to = shared + (part - 1) * EACH * (WARPS * 32);
#pragma unroll
            for (int r = 0; r < BLOCKS; ++r) {
#pragma unroll
                for (int h = 0; h < 2; ++h, to += 2 * WARPS * 32) {
                    to[0] = top[r][h];
                    to[WARPS * 32] = sum[r][h];
                }
#pragma unroll
                for (int d = 0; d < DV / 8; ++d)
#pragma unroll
                    for (int e = 0; e < 4; ++e, to += WARPS * 32)
                        *to = out[r][d][e];
            }
        }
        __syncthreads();
        if (part > 0)
            return;
#pragma unroll
        for (int other = 0; other < PARTS - 1; ++other) {
            float const* from = shared + other * EACH * (WARPS * 32);
#pragma unroll
            for (int r = 0; r < BLOCKS; ++r) {
                float mine[2], theirs[2];
#pragma unroll
                for (int h = 0; h < 2; ++h, from += 2 * WARPS * 32) {
                    float const high = fmaxf(top[r][h], from[0]),
                                origin = high == -__int_as_float(0x7f800000) ? 0 : high;
                    mine[h] = exp2Of(top[r][h] - origin);
                    theirs[h] = exp2Of(from[0] - origin);
                    top[r][h] = high;
                    sum[r][h] = sum[r][h] * mine[h] + from[WARPS * 32] * theirs[h];
                }
#pragma unroll
                for (int d = 0; d < DV / 8; ++d)
#pragma unroll
                    for (int e = 0; e < 4; ++e, from += WARPS * 32)
                        out[r][d][e] = out[r][d][e] * mine[e / 2] + *from * theirs[e / 2];
            }
        }
    }
    float* const y = a.y + batch * a.yStride.batch + head * a.yStride.head;
#pragma unroll
    for (int r = 0; r < BLOCKS; ++r)
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            int const to = row0 + r * 16 + h * 8;
            float const all = quadSum(sum[r][h]); // by all lanes, whatever their rows see
            float const scale = seesNone(a, span, to) ? 0
                                : WEIGHT_STEPS        ? a.weightStep
                                                      : 1 / withSink(a, head, all, top[r][h]);
#pragma unroll
            for (int d = 0; d < DV / 8; ++d) {
                int const column = d * 8 + t * 2;
                if (to >= qEnd || column >= VALUE)
                    continue;
                float* const place = y + i64(to) * a.yStride.row + column;
                float const low = out[r][d][h * 2] * scale, high = out[r][d][h * 2 + 1] * scale;
                if constexpr (UNIT > 1) {
                    *reinterpret_cast<float2*>(place) = float2{low, high};
                } else {
                    place[0] = low;
                    if (column + 1 < VALUE)
                        place[1] = high;
                }
            }
        }
}

} // namespace tw::cuda::attention_f32
