// SPDX-License-Identifier: Apache-2.0
// A thread holds rows `row` and row + 8, and of them keys 8 n + 2 t and the next; the sum's layout of mma and wgmma.
// After masks_f16.cuh or masks_f32.cuh.
//   int KEYS; bool MASK, MASK_ROWS, KEEP, KEEP_ROWS, INVERTED, PAIRS, CAUSAL, MASKED, SCORE_STEPS, SUM_STEPS, WEIGHT_STEPS,
// SOFTCAP, SINKS, SLOPES
#pragma once

#include "kernels/cuda/attention/masks_params.h"
#include "kernels/cuda/common/matrix.cuh"

namespace tw::cuda {

constexpr float LOG2E = 1.44269504f;
using Args = AttentionArgsOf<Element>;
TW_INLINE float exp2Of(float v)
{
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
    return r;
}
TW_INLINE float quadMax(float v)
{
    v = fmaxf(v, __shfl_xor_sync(~0u, v, 1));
    return fmaxf(v, __shfl_xor_sync(~0u, v, 2));
}
TW_INLINE float quadSum(float v)
{
    v += __shfl_xor_sync(~0u, v, 1);
    return v + __shfl_xor_sync(~0u, v, 2);
}
// The whole number next to v in [-128, 127], half to even; NaN gives 0. Sums with 3 * 2^22 have steps of 1.
TW_INLINE float wholeByte(float v)
{
    constexpr float WHOLE = 12582912.0f;
    return v == v ? __fadd_rn(__fadd_rn(fminf(fmaxf(v, -128.0f), 127.0f), WHOLE), -WHOLE) : 0;
}
// What a mask adds, as an exponent of 2. The lowest numbers there are hide keys in files; they stay finite, so that rows that see
// nothing else weigh all keys alike.
TW_INLINE float addOf(float mask)
{
    constexpr float MOST = 3e38f; // less than what tops begin with
    float const add = mask * LOG2E;
    return fabsf(mask) <= 3.4028235e38f ? fmaxf(fminf(add, MOST), -MOST) : add;
}
// Two neighbours, the first one low.
TW_INLINE u32 keepPair(u8 const* at, int key, int sk)
{
    if (key >= sk)
        return 0;
    if constexpr (PAIRS)
        return *reinterpret_cast<u16 const*>(at + key);
    return u32(at[key]) | (key + 1 < sk ? u32(at[key + 1]) << 8 : 0);
}
// Far from the last digits near 0, which scores do not need.
TW_INLINE float tanhByExponent(float v)
{
    float const e = exp2Of(-2 * LOG2E * fabsf(v));
    return copysignf(__fdividef(1 - e, 1 + e), v);
}
// Masks of one head; those that all queries share are read a step ahead.
struct Masks
{
    Element const* mask;
    u8 const* keep;
    float slope;
    int shift; // from a query to the key at its place
    MaskPair adds[MASK && !MASK_ROWS ? KEYS / 8 : 1];
    u32 keeps[KEEP && !KEEP_ROWS ? KEYS / 8 : 1];

    TW_INLINE void at(Args const& a, int batch, int head)
    {
        if constexpr (MASK)
            mask = a.mask + batch * a.maskStride.batch + head * a.maskStride.head;
        if constexpr (KEEP)
            keep = a.keep + batch * a.keepStride.batch + head * a.keepStride.head;
        if constexpr (SLOPES)
            slope = a.slopes[head] * LOG2E;
    }
    TW_INLINE void fetch(Args const& a, int key0, int t)
    {
#pragma unroll
        for (int n = 0; n < KEYS / 8; ++n) {
            if constexpr (MASK && !MASK_ROWS)
                adds[n] = maskPair(mask, key0 + n * 8 + t * 2, a.sk);
            if constexpr (KEEP && !KEEP_ROWS)
                keeps[n] = keepPair(keep, key0 + n * 8 + t * 2, a.sk);
        }
    }
    // s0, s1: scores of query r and keys key0 + 8 n + 2 t and the next.
    TW_INLINE void apply(Args const& a, int r, int key0, int n, int t, float& s0, float& s1) const
    {
        int const key = key0 + n * 8 + t * 2, known = min(r, a.sq - 1);
        float add0 = 0, add1 = 0;
        if constexpr (MASK) {
            MaskPair pair;
            if constexpr (MASK_ROWS)
                pair = maskPair(mask + i64(known) * a.maskStride.row, key, a.sk);
            else
                pair = adds[n];
            add0 = addOf(lowOf(pair));
            add1 = addOf(highOf(pair));
        }
        if constexpr (SLOPES) {
            add0 += slope * float(key - r - shift);
            add1 += slope * float(key + 1 - r - shift);
        }
        if constexpr (SOFTCAP) {
            s0 = fmaf(tanhByExponent(s0 * a.capIn), a.capOut, add0);
            s1 = fmaf(tanhByExponent(s1 * a.capIn), a.capOut, add1);
        } else if constexpr (SCORE_STEPS) {
            s0 = fmaf(wholeByte(s0 * a.scoreSteps), a.scoreStep, add0);
            s1 = fmaf(wholeByte(s1 * a.scoreSteps), a.scoreStep, add1);
        } else {
            s0 = fmaf(s0, a.scale, add0);
            s1 = fmaf(s1, a.scale, add1);
        }
        if constexpr (KEEP) {
            u32 pair;
            if constexpr (KEEP_ROWS)
                pair = keepPair(keep + i64(known) * a.keepStride.row, key, a.sk);
            else
                pair = keeps[n];
            if (((pair & 255) == 0) != INVERTED)
                s0 = a.fill + add0;
            if ((pair >> 8 == 0) != INVERTED)
                s1 = a.fill + add1;
        }
        if constexpr (SUM_STEPS) {
            s0 = wholeByte(s0 * a.sumSteps) * a.sumStep;
            s1 = wholeByte(s1 * a.sumSteps) * a.sumStep;
        }
    }
};
// The sum of a row's weights with its sink's, in units of the row's top.
TW_INLINE float withSink(Args const& a, int head, float sum, float top)
{
    if constexpr (SINKS)
        sum += exp2Of(valueOf(a.sinks[head]) * LOG2E - top);
    return sum;
}

} // namespace tw::cuda
