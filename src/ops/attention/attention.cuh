// SPDX-License-Identifier: Apache-2.0
// A block for each row of scores and each kThreads columns of the value: scores in chunks of kThreads, one for each
// thread; sum and result are scaled again when the largest score grows.
// Where weights are rounded, the sum is known before: a first walk over the keys finds it.
//   type T, of q, Key, of k and v; bool kIntegers: y is i8 in steps of *step; int kThreads; float kScale, kFill: what a score becomes that is not kept; bool kKeepInverted; float kScoreStep,
//   kSumStep, kWeightStep: what is rounded to multiples of them, 0: nothing; float kSoftcap: of scores, 0: none; bool kCausal, kWindow, kTable, kPages
#pragma once

#include "kernels/cuda/common/prelude.cuh"
#include "kernels/cuda/common/steps.cuh"
#include "ops/attention/attention_params.h"

namespace tw::ops::attention {

TW_INLINE float lowest()
{
    return -__int_as_float(0x7f800000);
}
TW_INLINE float fill() // the constant itself gives other machine code
{
    return kFill;
}
TW_INLINE float rounded(float x, float step)
{
    return x != x ? 0 : fminf(fmaxf(rintf(__fdiv_rn(x, step)), -128.0f), 127.0f) * step;
}
TW_INLINE float larger(float a, float b)
{
    return b > a ? b : a;
}
TW_INLINE float sum(float a, float b)
{
    return a + b;
}
TW_INLINE i64 place(OperandPlace const& p, i64 b, i64 h, i64 row)
{
    return p.offset + b * p.batch + h * p.head + row * p.row;
}
constexpr i64 kPageRows = 16;
// The image, or block, whose key j image b sees, and its row there.
TW_INLINE i64 imageOf(Params const& p, i64 b, i64 j)
{
    if constexpr (kPages)
        return max(min(i64(p.pages[(b * p.columns + j) / kPageRows]), p.blocks - 1), i64(0));
    if constexpr (!kTable)
        return b;
    return b / p.sharing * p.sharing + max(min(i64(p.table[b * p.columns + j]), p.sharing - 1), i64(0));
}
TW_INLINE i64 rowOf(i64 j)
{
    return kPages ? j % kPageRows : j;
}
TW_KERNEL attention(const __grid_constant__ Params p)
{
    __shared__ float weights[kThreads], scratch[32];
    idx const rest = divide(blockIdx.x, p.chunks), bh = divide(rest, p.rowCount), b = divide(bh, p.headCount);
    i64 const i = i64(rest - bh * idx(p.rowCount.d)), h = i64(bh - b * idx(p.headCount.d));
    i64 const d = i64(blockIdx.x - rest * idx(p.chunks.d)) * kThreads + threadIdx.x;
    T const* const q = static_cast<T const*>(p.q) + place(p.at[0], b, h, i);
    Key const* const v = static_cast<Key const*>(p.v);
    i64 from = 0, to = p.columns; // keys that the row sees
    if (p.begins)
        for (i64 e = 0; e < p.beginCount; ++e) {
            i64 const begin = p.begins[e];
            if (begin > i) {
                to = min(to, begin);
                break;
            }
            from = max(from, begin);
        }
    if (p.lengths)
        to = max(min(i64(p.lengths[b]), p.columns), i64(0));
    i64 const position = p.begins ? i : to - p.rows + i;
    if constexpr (kWindow)
        from = max(from, position - p.window + 1);
    if constexpr (kCausal)
        to = min(to, position + 1);
    float const keyScale = p.keyScales ? p.keyScales[h / p.headsPerKey] * kScale : kScale;
    float const valueScale = p.valueScales ? p.valueScales[h / p.headsPerKey] : 1;
    float m = p.sinks ? load<float>(static_cast<T const*>(p.sinks)[h]) : lowest(), s = p.sinks ? 1 : 0, result = 0;
    constexpr int kWalks = kWeightStep > 0 ? 2 : 1;
    for (int walk = 0; walk < kWalks; ++walk) {
        bool const isLast = walk == kWalks - 1;
        for (i64 first = from; first < to; first += kThreads) {
            i64 const j = first + threadIdx.x;
            float t = lowest(), w = 0;
            if (j < to) {
                Key const* const k =
                    static_cast<Key const*>(p.k) + place(p.at[1], imageOf(p, b, j), h / p.headsPerKey, rowOf(j));
                t = 0;
                for (i64 e = 0; e < p.size; ++e)
                    t += load<float>(q[e]) * load<float>(k[e]);
                t *= keyScale;
                if constexpr (kScoreStep > 0)
                    t = rounded(t, kScoreStep);
                if constexpr (kSoftcap > 0)
                    t = kSoftcap * tanh(t / kSoftcap);
                if (p.keep && (static_cast<b8 const*>(p.keep)[place(p.at[4], b, h, i) + j].v != 0) == kKeepInverted)
                    t = fill();
                if (p.mask)
                    t += load<float>(static_cast<T const*>(p.mask)[place(p.at[3], b, h, i) + j]);
                if (p.slopes)
                    t += p.slopes[h] * float(j - position);
                if constexpr (kSumStep > 0)
                    t = rounded(t, kSumStep);
            }
            if (kWalks > 1 && isLast) {
                w = rounded(exp(t - m) / s, kWeightStep);
                __syncthreads(); // the weights before are read
            } else {
                float const next = larger(m, blockReduce(t, lowest(), scratch, larger));
                // Nothing but -inf so far has no weight yet; NaN stays.
                w = j < to ? (next == lowest() && t == t ? 0 : exp(t - next)) : 0;
                float const again = m == next ? 1 : exp(m - next);
                s = s * again + blockReduce(w, 0.0f, scratch, sum);
                result *= again;
                m = next;
            }
            weights[threadIdx.x] = w;
            __syncthreads();
            i64 const many = min(to - first, i64(kThreads));
            if (isLast && d < p.valueSize)
                for (i64 e = 0; e < many; ++e)
                    result += weights[e] *
                              load<float>(
                                  v[place(p.at[2], imageOf(p, b, first + e), h / p.headsPerKey, rowOf(first + e)) + d]);
        }
    }
    if (d < p.valueSize) {
        i64 const at = place(p.at[5], b, h, i) + d;
        T const y = store<T>(from >= to ? 0.0f : (kWalks > 1 ? result : result / s) * valueScale);
        if constexpr (kIntegers)
            static_cast<i8*>(p.y)[at] = store<i8>(Steps(*p.step)(load<float>(y)));
        else
            static_cast<T*>(p.y)[at] = y;
    }
}

} // namespace tw::ops::attention
