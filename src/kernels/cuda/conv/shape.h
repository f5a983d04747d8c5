// SPDX-License-Identifier: Apache-2.0
// What convolutions as implicit matrix products share whatever they compute in: the sizes of a problem. Rows are output
// pixels, columns filters, k runs over a filter's taps and channels as x has them in memory.
#pragma once

#include <cstdint>

namespace tw::cuda {

constexpr int kConvStepK = 32; // elements of k that a step takes

struct ConvShape
{
    int64_t n = 1, h = 1, w = 1, c = 1, k = 1, r = 1, s = 1, outH = 1, outW = 1;
    int64_t groups = 1;
    int64_t d = 1, t = 1, outD = 1; // of a third axis, before the others
    int strideD = 1, padD = 0, dilationD = 1;
    int strideH = 1, strideW = 1, padH = 0, padW = 0, dilationH = 1, dilationW = 1;
};

// Filters come as [k, paddedK()], each in the order of k and then zeros, aligned to 16 bytes.
int64_t paddedK(ConvShape const& shape);
// The widest copy that x's layout allows, in elements: `most`, or less by powers of 2.
int vectorOf(ConvShape const& shape, bool nchw, int most);
// Null, or why no kernel counts these sizes with tiles of so many filters.
char const* unsupportedSizes(ConvShape const& shape, int tileN);

} // namespace tw::cuda
