// SPDX-License-Identifier: Apache-2.0
// Runs of scores of tokens, and the sums of their weights, as families/decoding/row_params.h defines them: the same numbers,
// bit for bit. One table for each instruction set.
#pragma once

#include <cstdint>

namespace tw::kernels {

struct TokenKernels
{
    // y = scores of x / t, x being scores of any floats; t > 0.
    void (*divide)(float const* x, int64_t n, float t, float* y);
    void (*scoresOfHalves)(uint16_t const* x, int64_t n, float* y);
    // Of scores: the largest; -infinity of none.
    float (*most)(float const* y, int64_t n);
    // Of scores no less than `least`, and of weights no less than `leastWeight`.
    uint64_t (*sum)(float const* y, int64_t n, float most, float least, uint64_t leastWeight);
};

} // namespace tw::kernels

namespace tw::avx2 {
extern kernels::TokenKernels const kTokens;
}
namespace tw::avx512 {
extern kernels::TokenKernels const kTokens;
}
