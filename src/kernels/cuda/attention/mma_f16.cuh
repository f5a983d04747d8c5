// SPDX-License-Identifier: Apache-2.0
// Attention of FP16 by mma.sync.
//   int HEAD, D (padded), VALUE, DV (padded), UNIT, WARPS, KEYS; bool INTEGERS; of results: int RESULT_UNIT, that a copy
// moves, type Moved
#pragma once

#include "kernels/cuda/attention/integers.cuh"
#include "kernels/cuda/attention/mma_f16_sizes.cuh"
#include "kernels/cuda/attention/rows.cuh"
#include "kernels/cuda/attention/spans.cuh"
#include "kernels/cuda/common/matrix.cuh"

namespace tw::cuda::attention_f16 {

TW_KERNEL __launch_bounds__(THREADS, 1) attention(const __grid_constant__ Args a)
{
    extern __shared__ __align__(16) u8 raw[];
    u32 const sharedQ = sharedAddress(raw), sharedK = sharedQ + ROWS * PITCH, sharedV = sharedK + 2 * TILE_BYTES;
    int const warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    int const head = blockIdx.y, keyHead = head / a.headsPerKey, batch = blockIdx.z;
    f16 const* const q = a.q + batch * a.qStride.batch + head * a.qStride.head;
    f16 const* const k = a.k + batch * a.kStride.batch + keyHead * a.kStride.head;
    f16 const* const v = a.v + batch * a.vStride.batch + keyHead * a.vStride.head;
    Masks masks;
    releaseDependents();
    waitForPrevious();
    masks.at(a, batch, head);
    Span const span = spanOf<ROWS>(a);
    int const q0 = span.q0, qEnd = span.qEnd, from = span.from, end = span.end;
    if (SEGMENTS && q0 >= qEnd)
        return;
    int const row = q0 + warp * 16 + g; // of this thread: row and row + 8
    masks.shift = span.shift;
    int const limit = CAUSAL ? max(min(end, q0 + ROWS + span.shift), 1) : end, steps = (limit - from + KEYS - 1) / KEYS;
    // The sums that weights are rounded by come of a walk of its own, unless one step holds all keys.
    int const walked = WEIGHT_STEPS && steps > 1 ? steps : 0, all = walked + steps;
    loadTile<ROWS, HEAD, D>(sharedQ, q, a.qStride.row, q0, qEnd);
    loadTile<KEYS, HEAD, D>(sharedK, k, a.kStride.row, from, end);
    copyCommit();
    if (walked == 0)
        loadTile<KEYS, VALUE, DV>(sharedV, v, a.vStride.row, from, end);
    copyCommit();

    u32 const qAt = sharedQ + (warp * 16 + lane % 16) * PITCH + lane / 16 * 16;
    u32 fragQ[KEEPS ? D / 16 : 1][4];
    float out[DV / 8][4] = {}, top[2] = {-__int_as_float(0x7f800000), -__int_as_float(0x7f800000)}, sum[2] = {};
    for (int step = 0; step < all; ++step) {
        int const key0 = from + (step < walked ? step : step - walked) * KEYS,
                  next = step + 1 == walked ? from : key0 + KEYS;
        masks.fetch(a, key0, t);
        copyWait<1>(); // the step's keys
        __syncthreads();
        if (step + 1 < all)
            loadTile<KEYS, HEAD, D>(sharedK + ((step + 1) & 1) * TILE_BYTES, k, a.kStride.row, next, end);
        copyCommit();
        if (KEEPS && step == 0) {
#pragma unroll
            for (int d = 0; d < D / 16; ++d)
                loadMatrix4(fragQ[KEEPS ? d : 0], qAt + d * 32);
        }
        float s[KEYS / 8][4] = {};
        u32 const kAt = sharedK + (step & 1) * TILE_BYTES + (lane / 16 * 8 + lane % 8) * PITCH + lane / 8 % 2 * 16;
#pragma unroll
        for (int d = 0; d < D / 16; ++d) {
            if constexpr (!KEEPS)
                loadMatrix4(fragQ[0], qAt + d * 32);
#pragma unroll
            for (int n = 0; n < KEYS / 16; ++n) {
                u32 b[4];
                loadMatrix4(b, kAt + n * 16 * PITCH + d * 32);
                mma(s[n * 2], fragQ[KEEPS ? d : 0], b[0], b[1]);
                mma(s[n * 2 + 1], fragQ[KEEPS ? d : 0], b[2], b[3]);
            }
        }
        if constexpr (MASKED) {
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                for (int h = 0; h < 2; ++h)
                    masks.apply(a, row + h * 8, key0, n, t, s[n][h * 2], s[n][h * 2 + 1]);
        }
        if (hidesSome<ROWS>(a, span, key0, KEYS)) {
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    int const key = key0 + n * 8 + t * 2 + e % 2;
                    if (hides(a, span, row + e / 2 * 8, key))
                        s[n][e] = -__int_as_float(0x7f800000);
                }
        }
        // Without masks the scores are scaled in the exponent; tops are of scaled scores.
        float const scale = MASKED ? 1 : a.scale;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            float high = s[0][h * 2];
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
                high = fmaxf(high, fmaxf(s[n][h * 2], s[n][h * 2 + 1]));
            high = fmaxf(top[h], quadMax(high) * scale);
            float const origin = high == -__int_as_float(0x7f800000) ? 0 : high, shrink = exp2Of(top[h] - origin);
            top[h] = high;
            float part = 0;
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    float const x = exp2Of(MASKED ? s[n][h * 2 + e] - origin : s[n][h * 2 + e] * scale - origin);
                    s[n][h * 2 + e] = x;
                    part += x;
                }
            if (!WEIGHT_STEPS || walked == 0 || step < walked)
                sum[h] = sum[h] * shrink + part;
            if (WEIGHT_STEPS && step >= walked) {
                float const inSteps = a.weightSteps / quadSum(sum[h]);
#pragma unroll
                for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                    for (int e = 0; e < 2; ++e)
                        s[n][h * 2 + e] = wholeByte(s[n][h * 2 + e] * inSteps);
            }
#pragma unroll
            for (int d = 0; d < DV / 8; ++d) {
                out[d][h * 2] *= shrink;
                out[d][h * 2 + 1] *= shrink;
            }
        }
        copyWait<1>(); // the step's values
        __syncthreads();
        if (step + 1 < all && step + 1 >= walked)
            loadTile<KEYS, VALUE, DV>(sharedV + ((step + 1) & 1) * TILE_BYTES, v, a.vStride.row, next, end);
        copyCommit();
        if (step < walked)
            continue;
        u32 const vAt = sharedV + (step & 1) * TILE_BYTES + lane % 16 * PITCH + lane / 16 * 16;
#pragma unroll
        for (int n = 0; n < KEYS / 16; ++n) {
            u32 p[4] = {packHalves(s[n * 2][0], s[n * 2][1]), packHalves(s[n * 2][2], s[n * 2][3]),
                        packHalves(s[n * 2 + 1][0], s[n * 2 + 1][1]), packHalves(s[n * 2 + 1][2], s[n * 2 + 1][3])};
#pragma unroll
            for (int d = 0; d < DV / 16; ++d) {
                u32 b[4];
                loadMatrix4Transposed(b, vAt + n * 16 * PITCH + d * 32);
                mma(out[d * 2], p, b[0], b[1]);
                mma(out[d * 2 + 1], p, b[2], b[3]);
            }
        }
    }
    copyWait<0>();
    // The warp's own rows of q hold its result on the way out.
    u32 const own = sharedQ + warp * 16 * PITCH;
    using Result = ByteOrHalf<INTEGERS>;
    Steps const inSteps = stepsOf<INTEGERS>(a.step);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        float const all = quadSum(sum[h]); // by all lanes, whatever their rows see
        float const scale = seesNone(a, span, row + h * 8) ? 0
                            : WEIGHT_STEPS                 ? a.weightStep
                                                           : 1 / withSink(a, head, all, top[h]);
#pragma unroll
        for (int d = 0; d < DV / 8; ++d)
            storeResults(own + (g + h * 8) * PITCH + (d * 8 + t * 2) * int(sizeof(Result)), out[d][h * 2] * scale,
                         out[d][h * 2 + 1] * scale, inSteps, Result());
    }
    __syncwarp();
    Result* const y = reinterpret_cast<Result*>(a.y) + batch * a.yStride.batch + head * a.yStride.head;
    u8 const* const result = raw + warp * 16 * PITCH;
    constexpr int UNITS = VALUE / RESULT_UNIT; // of a row
#pragma unroll 4
    for (int i = 0; i < (16 * UNITS + 31) / 32; ++i) {
        int const at = lane + i * 32, r = at / UNITS, u = at % UNITS, to = q0 + warp * 16 + r;
        if (at < 16 * UNITS && to < qEnd)
            *reinterpret_cast<Moved*>(y + i64(to) * a.yStride.row + u * RESULT_UNIT) =
                *reinterpret_cast<Moved const*>(result + r * PITCH + u * RESULT_UNIT * int(sizeof(Result)));
    }
}

} // namespace tw::cuda::attention_f16
