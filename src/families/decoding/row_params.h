// SPDX-License-Identifier: Apache-2.0
// What a row of decoding asks for, and the arithmetic by which every device chooses the same tokens. CPU kernels and device
// code both compile this text; references have their own.
#pragma once

#include "kernels/cuda/common/types.h"

#ifdef __CUDACC_RTC__
#include "kernels/cuda/common/device.cuh"
#define TW_BOTH TW_INLINE
#else
#include <bit>
#include <cmath>
#include <limits>
#define TW_BOTH inline
#endif

namespace tw::ops::decoding {

using cuda::i32, cuda::i64, cuda::u32, cuda::u64;

// Columns of the tensor of floats, and what holds where there is no such column or its number says nothing.
enum FloatColumn : int
{
    kTemperature = 0,   // 1; 0, below and NaN: the best token
    kTopP = 1,          // 1; 0 and below: the best token
    kMinP = 2,          // 0; above 1: 1
    kRepetition = 3,    // 1; it must be finite and above 0
    kPresence = 4,      // 0; it must be finite
    kFrequency = 5,     // 0; it must be finite
    kLengthPenalty = 6, // 1; it must be finite
    kFloatColumns = 7,
};
// Columns of the tensor of integers. Lengths are those of whole sequences, prompts included.
enum IntColumn : int
{
    kTopK = 0,      // 0 and below: all tokens
    kMinLength = 1, // 0
    kMaxLength = 2, // 0 and below, or above the capacity: the capacity
    kNgram = 3,     // 0 and below: any n-gram may come again
    kSeedLow = 4,   // 0
    kSeedHigh = 5,  // 0
    kStream = 6,    // 0: which of the sequences of one seed this is
    kEos = 7,       // -1: none
    kPad = 8,       // 0
    kEarly = 9,     // 0; 1: beams stop with as many ends as there are beams; 2: never before none can win
    kIntColumns = 10,
};

struct Request
{
    float temperature, topP, minP, repetition, presence, frequency, lengthPenalty;
    i32 topK, minLength, maxLength, ngram;
    u32 seedLow, seedHigh, stream;
    i32 eos, pad, early;
};

constexpr float kLargest = 3.402823466e+38F;

TW_BOTH bool isFinite(float v)
{
    return v >= -kLargest && v <= kLargest;
}
// The score of a token that cannot be chosen.
TW_BOTH float never()
{
#ifdef __CUDACC_RTC__
    return __int_as_float(int(0xff800000u));
#else
    return -std::numeric_limits<float>::infinity();
#endif
}
TW_BOTH bool isNever(float v)
{
    return v < -kLargest;
}
// A score as it counts: NaN is never chosen, infinity is the largest number.
TW_BOTH float scoreOf(float v)
{
    return v >= -kLargest ? v < kLargest ? v : kLargest : never();
}
// Rounded, and never a part of a contracted operation.
TW_BOTH float product(float a, float b)
{
#ifdef __CUDACC_RTC__
    return __fmul_rn(a, b);
#else
    return a * b;
#endif
}
TW_BOTH float quotient(float a, float b)
{
#ifdef __CUDACC_RTC__
    return __fdiv_rn(a, b);
#else
    return a / b;
#endif
}
TW_BOTH double product(double a, double b)
{
#ifdef __CUDACC_RTC__
    return __dmul_rn(a, b);
#else
    return a * b;
#endif
}

TW_BOTH Request requestOf(float const* floats, i32 floatCount, i32 const* ints, i32 intCount)
{
    auto const number = [&](int column, float otherwise) { return column < floatCount ? floats[column] : otherwise; };
    auto const finite = [&](int column, float otherwise) {
        float const v = number(column, otherwise);
        return isFinite(v) ? v : otherwise;
    };
    auto const integer = [&](int column, i32 otherwise) { return column < intCount ? ints[column] : otherwise; };
    Request r;
    r.temperature = number(kTemperature, 1);
    r.topP = number(kTopP, 1);
    r.minP = number(kMinP, 0);
    r.repetition = finite(kRepetition, 1);
    r.presence = finite(kPresence, 0);
    r.frequency = finite(kFrequency, 0);
    r.lengthPenalty = finite(kLengthPenalty, 1);
    r.temperature = r.temperature > 0 ? r.temperature : 0;
    r.topP = r.topP < 1 ? r.topP > 0 ? r.topP : 0 : 1;
    r.minP = r.minP > 0 ? r.minP < 1 ? r.minP : 1 : 0;
    r.repetition = r.repetition > 0 ? r.repetition : 1;
    r.topK = integer(kTopK, 0);
    r.minLength = integer(kMinLength, 0);
    r.maxLength = integer(kMaxLength, 0);
    r.ngram = integer(kNgram, 0);
    r.seedLow = u32(integer(kSeedLow, 0));
    r.seedHigh = u32(integer(kSeedHigh, 0));
    r.stream = u32(integer(kStream, 0));
    r.eos = integer(kEos, -1);
    r.pad = integer(kPad, 0);
    r.early = integer(kEarly, 0);
    return r;
}

// The length that a sequence ends at.
TW_BOTH i32 limitOf(Request const& r, i32 capacity)
{
    return r.maxLength > 0 && r.maxLength < capacity ? r.maxLength : capacity;
}
TW_BOTH i32 clamped(i32 v, i32 least, i32 most)
{
    return v < least ? least : v > most ? most : v;
}

// A score of a token that is in the sequence, and (counts / 2) times in it behind the prompt.
TW_BOTH float penalized(Request const& r, float score, u32 counts)
{
    if (isNever(score))
        return score;
    float y = score > 0 ? quotient(score, r.repetition) : product(score, r.repetition);
    if (counts > 1) {
        y = y - r.presence;
        y = y - product(r.frequency, float(counts / 2));
    }
    return scoreOf(y);
}

// Token ids that end sequences beside the row's own.
struct Ends
{
    i32 const* ids = nullptr;
    i32 count = 0;
};
TW_BOTH bool isEnd(Request const& r, Ends const& ends, i32 token)
{
    bool found = token == r.eos;
    for (i32 i = 0; i < ends.count; ++i)
        found = found || token == ends.ids[i];
    return found && token >= 0;
}

// Words of a row, [2, room]: their ids one behind the other, and where each ends; the first end that does not rise, or lies
// outside, ends the list.
struct Words
{
    i32 const* ids = nullptr;
    i32 room = 0;
    TW_BOTH Words of(i64 row) const { return {ids ? ids + row * 2 * room : nullptr, ids ? room : 0}; }
};
// Calls f(ids, length) for each.
template <class F>
TW_BOTH void forEachWord(Words const& words, F const& f)
{
    i32 begin = 0;
    for (i32 i = 0; i < words.room; ++i) {
        i32 const end = words.ids[words.room + i];
        if (end <= begin || end > words.room)
            return;
        f(words.ids + begin, end - begin);
        begin = end;
    }
}
TW_BOTH bool areEqual(i32 const* a, i32 const* b, i32 count)
{
    for (i32 i = 0; i < count; ++i)
        if (a[i] != b[i])
            return false;
    return true;
}
TW_BOTH bool endsWithWord(Words const& words, i32 const* sequence, i32 length)
{
    bool found = false;
    forEachWord(words, [&](i32 const* ids, i32 n) {
        found = found || (n <= length && areEqual(ids, sequence + length - n, n));
    });
    return found;
}

// exp(-below) as an integer, exp(0) being 2^40: sums of weights do not depend on their order. `below` is the difference of two
// floats, rounded, and not below 0. Within 1.5e-7 of exp, and 0 from 32 on. All in integers, every product truncated:
// u = below 2^26; t = u log2(e), 25 bits behind the point; n and f: its whole part and the rest, 32 bits;
// 2^(40-n) (1 - f (c0 - f (c1 - f (c2 - f (c3 - f c4))))), the c fitted so that the largest error is least and 2^-1 is exact.
constexpr int kWeightBits = 40;
constexpr int kMostTokens = 1 << 22; // of which the sum of weights has 62 bits
TW_BOTH u32 highProduct(u32 a, u32 b)
{
    return u32(u64(a) * b >> 32);
}
TW_BOTH u64 weightOf(float below)
{
    if (!(below < 32))
        return 0;
    u32 const t = highProduct(u32(below * float(1 << 26)), 3098164009U);
    u32 const n = t >> 25, f = t << 7;
    u32 h = highProduct(f, 4073454U);
    h = highProduct(f, 39582418U - h);
    h = highProduct(f, 237543469U - h);
    h = highProduct(f, 1031582456U - h);
    h = highProduct(f, 2977031600U - h);
    return ((u64(1) << 32) - h) << (kWeightBits - 32) >> n;
}
// The part of a sum of weights that is at least p of it; at least 1.
TW_BOTH u64 shareOf(float p, u64 total)
{
    u64 const share = u64(ceil(product(double(p), double(total))));
    return share < 1 ? 1 : share < total ? share : total;
}
// Weights below are less than p of the largest.
TW_BOTH u64 leastWeight(float p)
{
    return u64(ceil(product(double(p), double(u64(1) << kWeightBits))));
}
// log of what the weights add up to, in units of the largest.
TW_BOTH double logOfSum(u64 total)
{
    return log(double(total) / double(u64(1) << kWeightBits));
}

TW_BOTH u64 highProduct64(u64 a, u64 b)
{
#ifdef __CUDACC_RTC__
    return __umul64hi(a, b);
#else
    u64 const a0 = u32(a), a1 = a >> 32, b0 = u32(b), b1 = b >> 32;
    u64 const low = a0 * b0, m0 = a1 * b0 + (low >> 32), m1 = a0 * b1 + u32(m0);
    return a1 * b1 + (m0 >> 32) + (m1 >> 32);
#endif
}
// Philox 4x32 of ten rounds: the first 64 bits for the key (seed) and the counter (step, stream, 0, 0).
TW_BOTH u64 randomOf(Request const& r, u32 step)
{
    u32 c0 = step, c1 = r.stream, c2 = 0, c3 = 0, k0 = r.seedLow, k1 = r.seedHigh;
    for (int round = 0; round < 10; ++round) {
        u64 const p = u64(0xD2511F53U) * c0, q = u64(0xCD9E8D57U) * c2;
        c0 = u32(q >> 32) ^ c1 ^ k0;
        c1 = u32(q);
        c2 = u32(p >> 32) ^ c3 ^ k1;
        c3 = u32(p);
        k0 += 0x9E3779B9U;
        k1 += 0xBB67AE85U;
    }
    return u64(c1) << 32 | c0;
}
// In [0, total).
TW_BOTH u64 drawOf(Request const& r, u32 step, u64 total)
{
    return highProduct64(randomOf(r, step), total);
}

// Larger for larger numbers; not for NaN. -0 is 0.
TW_BOTH u32 orderOf(float v)
{
#ifdef __CUDACC_RTC__
    u32 const bits = __float_as_uint(v + 0.0f);
#else
    u32 const bits = std::bit_cast<u32>(v + 0.0F);
#endif
    return bits & 0x80000000U ? ~bits : bits | 0x80000000U;
}

} // namespace tw::ops::decoding
