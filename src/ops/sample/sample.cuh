// SPDX-License-Identifier: Apache-2.0
// A row a block of kThreads.
//   type T: storage of logits   int kThreads
#pragma once

#include "families/decoding/block.cuh"
#include "ops/sample/sample_params.h"

namespace tw::ops::sample {

using namespace decoding;

// Scores by temperature. Tokens stand by keys (keyOf()): larger for larger scores, of equals for lower ids; `least`: of the
// last that stays.
struct Scores
{
    float const* scores;
    i32 count;
    float temperature;
    float most; // of them
    u64 least;

    TW_INLINE float at(i32 i) const
    {
        float const v = scoreOf(scores[i]);
        return isNever(v) ? v : scoreOf(quotient(v, temperature));
    }
    TW_INLINE u64 weightAt(i32 i) const
    {
        float const v = at(i);
        return keyOf(v, u32(i)) >= least ? weightOf(most - v) : 0;
    }
};

// The bits of keys that differ: scores, and ids below kMostTokens.
constexpr int kDigit = 8, kDigits = 1 << kDigit, kKeyBits = 64, kScoreBits = 32, kIdDigits = 24;

// The largest key such that what f(i) gives for all tokens with keys no less adds up to `wanted` at least, which all together
// do; its bits from `last` on alone, those below being 0. Digit by digit from the top: of the tokens that begin like it. Tokens
// that cannot come have key 0 and count for nothing. 24 bits hold an inverted id: those above are the same in all of them.
template <class F>
TW_INLINE u64 keyWhere(Scores const& s, u64 wanted, int last, F const& f)
{
    __shared__ u64 sums[kDigits];
    __shared__ u64 found[2]; // the digit, what is still wanted
    u64 key = 0;
    u64 const like = 0xff000000u; // of all ids
    for (int shift = kKeyBits - kDigit; shift >= last; shift -= kDigit) {
        if (shift == kIdDigits) {
            key |= like;
            continue;
        }
        for (int d = threadIdx.x; d < kDigits; d += blockDim.x)
            sums[d] = 0;
        __syncthreads();
        for (i32 i = threadIdx.x; i < s.count; i += blockDim.x) {
            u64 const mine = keyOf(s.at(i), u32(i));
            bool const begins = shift + kDigit == kKeyBits || (mine ^ key) >> (shift + kDigit) == 0;
            if (mine && begins)
                if (u64 const v = f(i))
                    atomicAdd(sums + (mine >> shift & (kDigits - 1)), v);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            int digit = kDigits - 1;
            u64 left = wanted;
            while (digit > 0 && sums[digit] < left)
                left -= sums[digit--];
            found[0] = u64(digit);
            found[1] = left;
        }
        __syncthreads();
        key |= found[0] << shift;
        wanted = found[1];
        __syncthreads();
    }
    return key;
}

// Sums in front of a thread's own, of the block's threads in order.
TW_INLINE u64 sumInFront(u64 own)
{
    __shared__ u64 sums[kThreads];
    sums[threadIdx.x] = own;
    __syncthreads();
    for (int step = 1; step < kThreads; step *= 2) {
        u64 const more = int(threadIdx.x) >= step ? sums[threadIdx.x - step] : 0;
        __syncthreads();
        sums[threadIdx.x] += more;
        __syncthreads();
    }
    return sums[threadIdx.x] - own;
}

// Threads have tokens one behind the other, in order.
TW_INLINE i32 drawn(Request const& r, Scores const& s, u32 step)
{
    __shared__ i32 token;
    u64 const leastOfAll = leastWeight(r.minP);
    auto const weightAt = [&](i32 i) {
        u64 const w = s.weightAt(i);
        return w >= leastOfAll ? w : 0;
    };
    i32 const each = (s.count + kThreads - 1) / kThreads;
    i32 const begin = min(i32(threadIdx.x) * each, s.count), end = min(begin + each, s.count);
    u64 own = 0;
    for (i32 i = begin; i < end; ++i)
        own += weightAt(i);
    u64 const total = sumOfBlock(own), front = sumInFront(own), target = drawOf(r, step, total);
    if (target >= front && target - front < own) {
        u64 left = target - front;
        i32 i = begin;
        for (u64 w = weightAt(i); left >= w; w = weightAt(++i))
            left -= w;
        token = i;
    }
    __syncthreads();
    return token;
}

// -1: none of them can come.
TW_INLINE i32 chosen(Request const& r, float const* scores, i32 count, u32 step)
{
    u64 best = 0;
    for (i32 i = threadIdx.x; i < count; i += blockDim.x) {
        u64 const key = keyOf(scoreOf(scores[i]), u32(i));
        best = key > best ? key : best;
    }
    best = mostOfBlock(best);
    if (best == 0)
        return -1;
    if (r.temperature == 0)
        return idOfKey(best);
    Scores s{scores, count, r.temperature, scoreOf(quotient(scoreOfKey(best), r.temperature)), 1};
    if (isNever(s.most))
        return -1;
    if (r.topK > 0 && r.topK < count) {
        u64 there = 0;
        for (i32 i = threadIdx.x; i < count; i += blockDim.x)
            there += !isNever(s.at(i));
        if (sumOfBlock(there) > u64(r.topK))
            s.least = keyWhere(s, u64(r.topK), kScoreBits, [](i32) { return u64(1); });
    }
    if (r.topP < 1) {
        u64 total = 0;
        for (i32 i = threadIdx.x; i < count; i += blockDim.x)
            total += s.weightAt(i);
        u64 const share = shareOf(r.topP, sumOfBlock(total));
        s.least = keyWhere(s, share, 0, [&](i32 i) { return s.weightAt(i); });
    }
    return drawn(r, s, step);
}

TW_KERNEL sample(const __grid_constant__ Params p)
{
    i64 const n = blockIdx.x;
    Request const r = requestOf(p.floats + n * p.floatColumns, p.floatColumns, p.ints + n * p.intColumns, p.intColumns);
    i32 const length = clamped(p.lengths[n], 0, p.capacity), prompt = clamped(p.prompts[n], 0, length);
    i32 const limit = limitOf(r, p.capacity);
    i32 const* from = p.sequences + n * p.capacity;
    i32* sequence = p.nextSequences + n * p.capacity;
    for (i32 i = threadIdx.x; i < p.capacity; i += blockDim.x)
        sequence[i] = from[i];
    __syncthreads();
    auto const isFinished = [&](i32 count) {
        return count == 0 || count >= limit ||
               (count > prompt &&
                (isEnd(r, p.ends, sequence[count - 1]) || endsWithWord(p.stop.of(n), sequence, count)));
    };
    bool const isOver = isFinished(length);
    i32 token = -1;
    float log = 0;
    if (!isOver) {
        T const* logits = static_cast<T const*>(p.logits) + n * p.tokens;
        token = chosen(r, p.scores + n * p.tokens, p.tokens, u32(length));
        float const score = token < 0 ? never() : scoreOf(load<float>(logits[token]));
        log = isNever(score) ? score : float(logSumOf(logits, p.tokens).of(score));
    }
    if (threadIdx.x != 0)
        return;
    if (token >= 0)
        sequence[length] = token;
    p.token[n] = token < 0 ? r.pad : token;
    p.finished[n] = token < 0 || isFinished(length + 1);
    p.log[n] = log;
    p.nextLengths[n] = length + (token >= 0);
}

} // namespace tw::ops::sample
