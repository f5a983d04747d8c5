// SPDX-License-Identifier: Apache-2.0
// A row for TEAM blocks of kThreads.
//   type T: storage of logits   int TEAM, kThreads
#pragma once

#include "families/decoding/team.cuh"
#include "ops/token_scores/token_scores_params.h"

namespace tw::ops::token_scores {

using namespace decoding;

TW_INLINE bool isToken(Params const& p, i32 t)
{
    return t >= 0 && t < p.tokens;
}

// counts[t]: 1 where t is in the sequence, and 2 for each time behind the prompt.
TW_INLINE void penalize(Params const& p, Request const& r, i32 const* sequence, i32 length, i32 prompt, float* y,
                        u32* counts)
{
    for (i32 i = threadIdx.x; i < length; i += blockDim.x)
        if (isToken(p, sequence[i]))
            counts[sequence[i]] = 1;
    __syncthreads();
    for (i32 i = prompt + threadIdx.x; i < length; i += blockDim.x)
        if (isToken(p, sequence[i]))
            atomicAdd(counts + sequence[i], 2u);
    __syncthreads();
    for (i32 i = threadIdx.x; i < length; i += blockDim.x) {
        i32 const t = sequence[i];
        if (!isToken(p, t))
            continue;
        u32 const count = atomicExch(counts + t, 0u);
        if (count)
            y[t] = penalized(r, y[t], count);
    }
    __syncthreads();
}

TW_INLINE void forbid(Params const& p, Request const& r, i32 const* sequence, i32 length, Words const& bad, float* y)
{
    auto const strike = [&](i32 t) {
        if (isToken(p, t))
            y[t] = never();
    };
    i32 const n = r.ngram;
    if (n > 0)
        for (i32 i = threadIdx.x; i <= length - n; i += blockDim.x)
            if (areEqual(sequence + i, sequence + length - n + 1, n - 1))
                strike(sequence[i + n - 1]);
    if (threadIdx.x == 0)
        forEachWord(bad, [&](i32 const* ids, i32 count) {
            if (count - 1 <= length && areEqual(ids, sequence + length - count + 1, count - 1))
                strike(ids[count - 1]);
        });
    if (length < r.minLength) {
        if (threadIdx.x == 0)
            strike(r.eos);
        for (i32 i = threadIdx.x; i < p.ends.count; i += blockDim.x)
            strike(p.ends.ids[i]);
    }
}

TW_KERNEL token_scores(const __grid_constant__ Params p)
{
    i64 const row = blockIdx.x / TEAM, n = row / p.beams;
    T const* x = static_cast<T const*>(p.logits) + row * p.tokens;
    float* y = p.y + row * p.tokens;
    i32 const length = clamped(p.lengths[n], 0, p.capacity), prompt = clamped(p.prompts[n], 0, length);
    LogSum sum;
    if (p.isLogSoftmax && length > 0)
        sum = logSumOf(x, p.tokens);
#pragma unroll 4
    for (i32 i = teamThread(); i < p.tokens; i += kTeamThreads) {
        float const v = length > 0 ? scoreOf(load<float>(x[i])) : never();
        y[i] = p.isLogSoftmax && !isNever(v) ? float(sum.of(v)) : v;
    }
    if (length == 0)
        return;
    teamSync();
    if (teamRank() > 0) // few tokens are left to change
        return;
    Request const r = requestOf(p.floats + n * p.floatColumns, p.floatColumns, p.ints + n * p.intColumns, p.intColumns);
    i32 const* sequence = p.sequences + row * p.capacity;
    penalize(p, r, sequence, length, prompt, y, p.counts + row * p.tokens);
    forbid(p, r, sequence, length, p.bad.of(n), y);
}

} // namespace tw::ops::token_scores
