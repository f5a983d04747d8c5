// SPDX-License-Identifier: Apache-2.0
// Attention of FP16 by wgmma. After wgmma() and wgmmaFrom().
//   int D, GROUPS, KEYS, STAGES, THREADS; bool INTEGERS
#pragma once

#include "kernels/cuda/attention/integers.cuh"
#include "kernels/cuda/attention/masks.cuh"
#include "kernels/cuda/attention/spans.cuh"
#include "kernels/cuda/common/hopper.cuh"

namespace tw::cuda::attention_wgmma_f16 {

constexpr bool ALONE = GROUPS == 1;                // its first thread copies: no warp for that
constexpr int ROWS = GROUPS * 64, HALVES = D / 64; // a tile is HALVES blocks of 64 columns, rows of 128 swizzled bytes
constexpr u32 Q_BYTES = ROWS * D * 2, TILE_BYTES = KEYS * D * 2;

template <int R>
TW_INLINE void loadTile(TensorMap const* map, u32 to, u32 bar, int row, int head, int batch)
{
    barrierExpect(bar, R * D * 2);
#pragma unroll
    for (int i = 0; i < HALVES; ++i)
        copyTile(to + i * R * 128, map, bar, i * 64, row, head, batch);
}

// s: scores of rows row and row + 8 (s[4 n ..]: of keys 8 n + 2 t and the next) become exponentials, up to the row's
// sum;
// shrink: what earlier sums are worth now. `counts`: they are added to the sum, else that knows
// them. `rounds`: they become whole numbers of weights' steps.
TW_INLINE void softmax(Args const& a, Masks const& masks, float (&s)[KEYS / 2], float (&top)[2], float (&sum)[2],
                       float (&shrink)[2], int row, int key0, int end, int t, bool edge, int shift, bool counts = true,
                       bool rounds = false)
{
    if constexpr (MASKED) {
#pragma unroll
        for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
            for (int h = 0; h < 2; ++h)
                masks.apply(a, row + h * 8, key0, n, t, s[n * 4 + h * 2], s[n * 4 + h * 2 + 1]);
    }
    if (edge) {
#pragma unroll
        for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                int const key = key0 + n * 8 + t * 2 + e % 2;
                if (key >= end || (CAUSAL && key > row + e / 2 * 8 + shift))
                    s[n * 4 + e] = -__int_as_float(0x7f800000);
            }
    }
    float const scale = MASKED ? 1 : a.scale; // without masks the scores are scaled in the exponent
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        float high = s[h * 2];
#pragma unroll
        for (int n = 0; n < KEYS / 8; ++n)
            high = fmaxf(high, fmaxf(s[n * 4 + h * 2], s[n * 4 + h * 2 + 1]));
        high = fmaxf(top[h], quadMax(high) * scale);
        float const origin = high == -__int_as_float(0x7f800000) ? 0 : high;
        shrink[h] = exp2Of(top[h] - origin);
        top[h] = high;
        float part = 0;
#pragma unroll
        for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                float& x = s[n * 4 + h * 2 + e];
                x = exp2Of(MASKED ? x - origin : x * scale - origin);
                part += x;
            }
        if (counts)
            sum[h] = sum[h] * shrink[h] + part;
        if (WEIGHT_STEPS && rounds) {
            float const inSteps = a.weightSteps / quadSum(sum[h]);
#pragma unroll
            for (int n = 0; n < KEYS / 8; ++n)
#pragma unroll
                for (int e = 0; e < 2; ++e)
                    s[n * 4 + h * 2 + e] = wholeByte(s[n * 4 + h * 2 + e] * inSteps);
        }
    }
}

TW_KERNEL __launch_bounds__(THREADS, 1)
    attention(const __grid_constant__ TensorMap mapQ, const __grid_constant__ TensorMap mapK,
              const __grid_constant__ TensorMap mapV, const __grid_constant__ Args a)
{
    extern __shared__ u8 raw[];
    u32 const base = (sharedAddress(raw) + 1023) & ~1023u, keys = base + Q_BYTES, values = keys + STAGES * TILE_BYTES;
    u32 const fullQ = values + STAGES * TILE_BYTES, fullK = fullQ + 8, fullV = fullK + STAGES * 8;
    u32 const emptyK = fullV + STAGES * 8, emptyV = emptyK + STAGES * 8;
    int const warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int const head = blockIdx.y, keyHead = head / a.headsPerKey, batch = blockIdx.z, shift = a.sk - a.sq;
    if (threadIdx.x == 0) {
        barrierInit(fullQ, 1);
#pragma unroll
        for (int s = 0; s < STAGES; ++s) {
            barrierInit(fullK + s * 8, 1);
            barrierInit(fullV + s * 8, 1);
            barrierInit(emptyK + s * 8, GROUPS);
            barrierInit(emptyV + s * 8, GROUPS);
        }
        barrierInitFence();
    }
    if (threadIdx.x == (ALONE ? 0 : GROUPS * 128)) {
        prefetchMap(&mapQ);
        prefetchMap(&mapK);
        prefetchMap(&mapV);
    }
    __syncthreads();
    releaseDependents();
    if constexpr (SEGMENTS)
        waitForPrevious(); // for the begins
    Span const span = spanOf<ROWS>(a);
    int const q0 = span.q0, qEnd = span.qEnd, from = span.from, end = span.end;
    if (SEGMENTS && q0 >= qEnd)
        return;
    int const limit = CAUSAL ? max(min(end, q0 + ROWS + shift), 1) : end, steps = (limit - from + KEYS - 1) / KEYS;
    // The sums that weights are rounded by come of a walk of its own, unless one step holds all keys.
    int const walked = WEIGHT_STEPS && steps > 1 ? steps : 0, all = walked + steps;
    auto rowOf = [&](int step) { return from + (step < walked ? step : step - walked) * KEYS; }; // of the step's keys

    if (warp >= GROUPS * 4) {
        if constexpr (!ALONE)
            asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (warp == GROUPS * 4 && lane == 0) {
            waitForPrevious();
            loadTile<ROWS>(&mapQ, base, fullQ, q0, head, batch);
            for (int step = 0; step < all; ++step) {
                int const s = step % STAGES, of = step - walked, sv = of % STAGES;
                barrierWait(emptyK + s * 8, (step / STAGES & 1) ^ 1);
                loadTile<KEYS>(&mapK, keys + s * TILE_BYTES, fullK + s * 8, rowOf(step), keyHead, batch);
                if (of < 0)
                    continue;
                barrierWait(emptyV + sv * 8, (of / STAGES & 1) ^ 1);
                loadTile<KEYS>(&mapV, values + sv * TILE_BYTES, fullV + sv * 8, rowOf(step), keyHead, batch);
            }
        }
    } else {
        if constexpr (!ALONE)
            asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(GROUPS == 2 ? 240 : 160));
        int const group = warp / 4, g = lane / 4, t = lane % 4, inGroup = threadIdx.x % 128;
        int const row0 = q0 + warp * 16, row = row0 + g;
        float s[KEYS / 2], out[D / 2] = {}, top[2] = {-__int_as_float(0x7f800000), -__int_as_float(0x7f800000)},
                                   sum[2] = {}, shrink[2];
        u32 p[KEYS / 16][4];
        auto copyKeys = [&](int step) {
            int const s = step % STAGES;
            if (step < all)
                loadTile<KEYS>(&mapK, keys + s * TILE_BYTES, fullK + s * 8, rowOf(step), keyHead, batch);
        };
        auto copyValues = [&](int step) {
            int const s = step % STAGES;
            if (step < steps)
                loadTile<KEYS>(&mapV, values + s * TILE_BYTES, fullV + s * 8, from + step * KEYS, keyHead, batch);
        };
        // The step's keys (values) have been used: their place is free.
        auto releaseKeys = [&](int step) {
            if (inGroup == 0) {
                if constexpr (ALONE)
                    copyKeys(step + STAGES);
                else
                    barrierArrive(emptyK + step % STAGES * 8);
            }
            __syncwarp();
        };
        auto releaseValues = [&](int step) {
            if (inGroup == 0) {
                if constexpr (ALONE)
                    copyValues(step + STAGES);
                else
                    barrierArrive(emptyV + step % STAGES * 8);
            }
            __syncwarp();
        };
        if (ALONE && inGroup == 0) {
            waitForPrevious();
            loadTile<ROWS>(&mapQ, base, fullQ, q0, head, batch);
#pragma unroll
            for (int s = 0; s < STAGES; ++s) {
                copyKeys(s);
                copyValues(s);
            }
        }
        __syncwarp();
        Masks masks;
        if constexpr (MASKED)
            waitForPrevious();
        masks.at(a, batch, head);
        if constexpr (MASKED)
            masks.fetch(a, from, t);
        auto scores = [&](int step) {
            u32 const q = base + group * 8192, k = keys + step % STAGES * TILE_BYTES;
#pragma unroll
            for (int d = 0; d < D / 16; ++d)
                wgmma(s, descriptor(q + d / 4 * ROWS * 128 + d % 4 * 32, 8192),
                      descriptor(k + d / 4 * KEYS * 128 + d % 4 * 32, 8192), d > 0);
            wgmmaCommit();
        };
        auto product = [&](int step) {
            u32 const v = values + step % STAGES * TILE_BYTES;
#pragma unroll
            for (int k = 0; k < KEYS / 16; ++k)
                wgmmaFrom(out, p[k], descriptor(v + k * 2048, KEYS * 128), 1);
            wgmmaCommit();
        };
        auto pack = [&] {
#pragma unroll
            for (int k = 0; k < KEYS / 16; ++k)
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    p[k][e] = packHalves(s[k * 8 + e * 2], s[k * 8 + e * 2 + 1]);
        };
        auto edgeAt = [&](int step) {
            return from + step * KEYS + KEYS > end || (CAUSAL && step * KEYS + KEYS > row0 + shift);
        };
        // Values behind the sequence's end weigh nothing, but may be infinite: they become zeros.
        auto clearBehind = [&](int step) {
            int const kept = end - from - step * KEYS;
            if (!SEGMENTS || kept >= KEYS)
                return;
            u32 const v = values + step % STAGES * TILE_BYTES;
            for (int i = kept * 8 + inGroup; i < KEYS * 8; i += 128)
#pragma unroll
                for (int half = 0; half < HALVES; ++half)
                    storeShared(v + half * KEYS * 128 + i * 16, Unit{});
            sharedFence();
            groupSync(1 + group, 128);
        };
        barrierWait(fullQ, 0);
        for (int step = 0; step < walked; ++step) {
            masks.fetch(a, from + step * KEYS, t);
            barrierWait(fullK + step % STAGES * 8, step / STAGES & 1);
            wgmmaFence();
            scores(step);
            wgmmaWait<0>();
            releaseKeys(step);
            softmax(a, masks, s, top, sum, shrink, row, from + step * KEYS, end, t, edgeAt(step), shift);
        }
        if constexpr (WEIGHT_STEPS)
            masks.fetch(a, from, t);
        barrierWait(fullK + walked % STAGES * 8, walked / STAGES & 1);
        wgmmaFence();
        scores(walked);
        wgmmaWait<0>();
        releaseKeys(walked);
        softmax(a, masks, s, top, sum, shrink, row, from, end, t, edgeAt(0), shift, !WEIGHT_STEPS || walked == 0,
                WEIGHT_STEPS);
        pack();
        for (int step = 1; step < steps; ++step) {
            int const count = walked + step, before = (step - 1) % STAGES;
            masks.fetch(a, from + step * KEYS, t);
            barrierWait(fullK + count % STAGES * 8, count / STAGES & 1);
            wgmmaFence();
            scores(count);
            barrierWait(fullV + before * 8, (step - 1) / STAGES & 1);
            product(step - 1);
            wgmmaWait<1>();
            releaseKeys(count);
            softmax(a, masks, s, top, sum, shrink, row, from + step * KEYS, end, t, edgeAt(step), shift,
                    !WEIGHT_STEPS || walked == 0, WEIGHT_STEPS);
            wgmmaWait<0>();
            releaseValues(step - 1);
#pragma unroll
            for (int d = 0; d < D / 2; ++d)
                out[d] *= shrink[d / 2 % 2];
            pack();
        }
        barrierWait(fullV + (steps - 1) % STAGES * 8, (steps - 1) / STAGES & 1);
        clearBehind(steps - 1);
        wgmmaFence();
        product(steps - 1);
        float const scale[2] = {WEIGHT_STEPS ? a.weightStep : 1 / quadSum(sum[0]),
                                WEIGHT_STEPS ? a.weightStep : 1 / quadSum(sum[1])};
        wgmmaWait<0>();

        // The group's own rows of q hold its result on the way out, 16 rows of 64 columns for each warp.
        groupSync(1 + group, 128);
        waitForPrevious();
        u32 const own = base + warp * 2048;
        using Result = ByteOrHalf<INTEGERS>;
        Result* const y = reinterpret_cast<Result*>(a.y) + batch * a.yStride.batch + head * a.yStride.head;
        Steps const inSteps = stepsOf<INTEGERS>(a.step);
        // 16 bytes of a row of 64 results; units are turned round so that rows begin in different banks.
        constexpr int UNITS = 4 * int(sizeof(Result)), UNIT_COLUMNS = 64 / UNITS;
        auto unitAt = [&](int r, int u) { return own + (r * UNITS + (u ^ (r / (8 / UNITS) & (UNITS - 1)))) * 16; };
#pragma unroll
        for (int half = 0; half < HALVES; ++half) {
#pragma unroll
            for (int u = 0; u < 8; ++u)
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    int const at = half * 32 + u * 4 + h * 2, byte = (u * 8 + t * 2) * int(sizeof(Result));
                    storeResults(unitAt(g + h * 8, byte / 16) + byte % 16, out[at] * scale[h], out[at + 1] * scale[h],
                                 inSteps, Result());
                }
            __syncwarp();
#pragma unroll
            for (int i = 0; i < UNITS / 2; ++i) {
                int const at = lane + i * 32, r = at / UNITS, u = at % UNITS;
                if (row0 + r < qEnd)
                    *reinterpret_cast<Unit*>(y + i64(row0 + r) * a.yStride.row + half * 64 + u * UNIT_COLUMNS) =
                        loadSharedUnit(unitAt(r, u));
            }
            __syncwarp();
        }
    }
}

} // namespace tw::cuda::attention_wgmma_f16
