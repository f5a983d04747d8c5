// SPDX-License-Identifier: Apache-2.0
// A row for TEAM blocks of kThreads.
//   type T: storage of logits   int TEAM, kThreads
#pragma once

#include "families/decoding/team.cuh"
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

// The first digit from the top, where those up to it add up to `wanted` at least, and what is wanted of it; 0 where there is none.
// By a warp.
TW_INLINE void findDigit(u64 const (&sums)[kDigits], u64 wanted, u64 (&found)[2])
{
    constexpr int kEach = kDigits / 32;
    int const lane = int(threadIdx.x), high = kDigits - 1 - lane * kEach;
    u64 own = 0;
#pragma unroll
    for (int j = 0; j < kEach; ++j)
        own += sums[high - j];
    u64 up = own;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        u64 const more = __shfl_up_sync(~0u, up, d);
        up += lane >= d ? more : 0;
    }
    u64 left = wanted - (up - own);
    if (up - own >= wanted || (up < wanted && lane < 31))
        return;
    int digit = high;
    while (digit > high - kEach + 1 && sums[digit] < left)
        left -= sums[digit--];
    found[0] = u64(digit);
    found[1] = left;
}

// The largest key such that what f(i) gives for all tokens with keys no less adds up to `wanted` at least, which all together
// do; its bits from `last` on alone, those below being 0. Digit by digit from the top: of the tokens that begin like it. Tokens
// that cannot come have key 0 and count for nothing. 24 bits hold an inverted id: those above are the same in all of them.
template <class F>
TW_INLINE u64 keyWhere(Scores const& s, u64 wanted, int last, F const& f)
{
    __shared__ u64 sums[kDigits], whole[kDigits]; // of this block, of all
    __shared__ u64 found[2];                      // the digit, what is still wanted
    u64 key = 0;
    u64 const like = 0xff000000u; // of all ids
    for (int shift = kKeyBits - kDigit; shift >= last; shift -= kDigit) {
        if (shift == kIdDigits) {
            key |= like;
            continue;
        }
        for (int d = threadIdx.x; d < kDigits; d += kThreads)
            sums[d] = 0;
        __syncthreads();
#pragma unroll 4
        for (i32 i = teamThread(); i < s.count; i += kTeamThreads) {
            u64 const mine = keyOf(s.at(i), u32(i));
            bool const begins = shift + kDigit == kKeyBits || (mine ^ key) >> (shift + kDigit) == 0;
            if (mine && begins)
                if (u64 const v = f(i))
                    atomicAdd(sums + (mine >> shift & (kDigits - 1)), v);
        }
        teamSync();
        for (int d = threadIdx.x; d < kDigits; d += kThreads) {
            u64 sum = sums[d];
            if constexpr (TEAM > 1) {
                sum = 0;
                for (u32 b = 0; b < TEAM; ++b)
                    sum += loadOf(sums + d, b);
            }
            whole[d] = sum;
        }
        teamSync(); // all have read
        if (threadIdx.x < 32)
            findDigit(whole, wanted, found);
        __syncthreads();
        key |= found[0] << shift;
        wanted = found[1];
        __syncthreads();
    }
    return key;
}

// Sums in front of a thread's own, of the team's threads in order.
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
    u64 front = sums[threadIdx.x] - own;
    if constexpr (TEAM > 1) {
        clusterSync();
        for (i32 b = 0; b < teamRank(); ++b)
            front += loadOf(sums + kThreads - 1, u32(b));
        clusterSync(); // all have read
    }
    return front;
}

// Threads have tokens one behind the other, in order.
TW_INLINE i32 drawn(Request const& r, Scores const& s, u32 step)
{
    u64 const leastOfAll = leastWeight(r.minP);
    auto const weightAt = [&](i32 i) {
        u64 const w = s.weightAt(i);
        return w >= leastOfAll ? w : 0;
    };
    i32 const each = (s.count + kTeamThreads - 1) / kTeamThreads;
    i32 const begin = min(teamThread() * each, s.count), end = min(begin + each, s.count);
    u64 own = 0;
    for (i32 i = begin; i < end; ++i)
        own += weightAt(i);
    u64 const total = sumOfTeam(own), front = sumInFront(own), target = drawOf(r, step, total);
    u64 token = 0; // and one more
    if (target >= front && target - front < own) {
        u64 left = target - front;
        i32 i = begin;
        for (u64 w = weightAt(i); left >= w; w = weightAt(++i))
            left -= w;
        token = u64(i) + 1;
    }
    return i32(mostOfTeam(token)) - 1;
}

// -1: none of them can come.
TW_INLINE i32 chosen(Request const& r, float const* scores, i32 count, u32 step)
{
    u64 best = 0;
#pragma unroll 4
    for (i32 i = teamThread(); i < count; i += kTeamThreads) {
        u64 const key = keyOf(scoreOf(scores[i]), u32(i));
        best = key > best ? key : best;
    }
    best = mostOfTeam(best);
    if (best == 0)
        return -1;
    if (r.temperature == 0)
        return idOfKey(best);
    Scores s{scores, count, r.temperature, scoreOf(quotient(scoreOfKey(best), r.temperature)), 1};
    if (isNever(s.most))
        return -1;
    if (r.topK > 0 && r.topK < count) {
        u64 there = 0;
#pragma unroll 4
        for (i32 i = teamThread(); i < count; i += kTeamThreads)
            there += !isNever(s.at(i));
        if (sumOfTeam(there) > u64(r.topK))
            s.least = keyWhere(s, u64(r.topK), kScoreBits, [](i32) { return u64(1); });
    }
    if (r.topP < 1) {
        u64 total = 0;
#pragma unroll 4
        for (i32 i = teamThread(); i < count; i += kTeamThreads)
            total += s.weightAt(i);
        u64 const share = shareOf(r.topP, sumOfTeam(total));
        s.least = keyWhere(s, share, 0, [&](i32 i) { return s.weightAt(i); });
    }
    return drawn(r, s, step);
}

TW_KERNEL sample(const __grid_constant__ Params p)
{
    i64 const n = blockIdx.x / TEAM;
    Request const r = requestOf(p.floats + n * p.floatColumns, p.floatColumns, p.ints + n * p.intColumns, p.intColumns);
    i32 const length = clamped(p.lengths[n], 0, p.capacity), prompt = clamped(p.prompts[n], 0, length);
    i32 const limit = limitOf(r, p.capacity);
    i32 const* from = p.sequences + n * p.capacity;
    i32* sequence = p.nextSequences + n * p.capacity;
    for (i32 i = teamThread(); i < p.capacity; i += kTeamThreads)
        sequence[i] = from[i];
    teamSync();
    auto const isFinished = [&](i32 count) {
        return count == 0 || count >= limit ||
               (count > prompt &&
                (isEnd(r, p.ends, sequence[count - 1]) || endsWithWord(p.stop.of(n), sequence, count)));
    };
    bool const isOver = isFinished(length);
    teamSync(); // before a token is written
    i32 token = -1;
    float log = 0;
    if (!isOver) {
        T const* logits = static_cast<T const*>(p.logits) + n * p.tokens;
        token = chosen(r, p.scores + n * p.tokens, p.tokens, u32(length));
        float const score = token < 0 ? never() : scoreOf(load<float>(logits[token]));
        log = isNever(score) ? score : float(logSumOf(logits, p.tokens).of(score));
    }
    if (teamThread() != 0)
        return;
    if (token >= 0)
        sequence[length] = token;
    p.token[n] = token < 0 ? r.pad : token;
    p.finished[n] = token < 0 || isFinished(length + 1);
    p.log[n] = log;
    p.nextLengths[n] = length + (token >= 0);
}

} // namespace tw::ops::sample
