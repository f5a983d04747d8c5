// SPDX-License-Identifier: Apache-2.0
// Scores and sums of weights of a row on CPUs, by kernels of an instruction set or plain ones.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "base/element.h"
#include "families/decoding/row_params.h"
#include "kernels/cpu/jit/emitter.h"
#include "kernels/cpu/token_weights.h"

namespace tw::ops::decoding {

using kernels::TokenKernels;

inline constexpr TokenKernels kPlainTokens = {
    [](float const* x, int64_t n, float t, float* y) {
        for (int64_t i = 0; i < n; ++i)
            y[i] = scoreOf(scoreOf(x[i]) / t);
    },
    [](uint16_t const* x, int64_t n, float* y) {
        for (int64_t i = 0; i < n; ++i)
            y[i] = scoreOf(halfToFloat(x[i]));
    },
    [](float const* y, int64_t n) {
        float m = never();
        for (int64_t i = 0; i < n; ++i)
            m = std::max(m, y[i]);
        return m;
    },
    [](float const* y, int64_t n, float most, float least, uint64_t leastWeight) {
        uint64_t total = 0;
        for (int64_t i = 0; i < n; ++i)
            if (y[i] >= least)
                if (uint64_t const w = weightOf(most - y[i]); w >= leastWeight)
                    total += w;
        return total;
    },
};
inline TokenKernels const& tokensOf(kernels::jit::Isa isa)
{
    return isa == kernels::jit::Isa::kAvx512 ? avx512::kTokens : avx2::kTokens;
}

template <class T>
void scoresOf(TokenKernels const& k, T const* x, int64_t n, float* y)
{
    if constexpr (std::is_same_v<T, float>)
        k.divide(x, n, 1, y);
    else if constexpr (std::is_same_v<T, uint16_t>)
        k.scoresOfHalves(x, n, y);
    else
        for (int64_t i = 0; i < n; ++i)
            y[i] = scoreOf(loadElement(x[i]));
}

struct LogSum
{
    float most = never();
    double log = 0; // of the sum, beside the largest
    // Of a token's score.
    double of(float score) const { return double(score) - double(most) - log; }
};
// `parts(f)` calls f(scores, count) for all of them, some at a time.
template <class Parts>
LogSum logSumOf(TokenKernels const& k, Parts const& parts)
{
    LogSum sum;
    parts([&](float const* y, int64_t n) { sum.most = std::max(sum.most, k.most(y, n)); });
    if (isNever(sum.most))
        return sum;
    uint64_t total = 0;
    parts([&](float const* y, int64_t n) { total += k.sum(y, n, sum.most, -kLargest, 0); });
    sum.log = logOfSum(total);
    return sum;
}

} // namespace tw::ops::decoding
