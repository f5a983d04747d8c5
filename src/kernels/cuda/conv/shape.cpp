// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/conv/shape.h"

namespace tw::cuda {

int64_t paddedK(ConvShape const& g)
{
    int64_t const k = g.r * g.s * (g.c / g.groups);
    return (k + kConvStepK - 1) / kConvStepK * kConvStepK;
}

int vectorOf(ConvShape const& g, bool nchw, int most)
{
    for (int v = most; v > 1; v /= 2)
        if (nchw ? g.s % v == 0 && g.w % v == 0 && g.strideW % v == 0 && g.padW % v == 0 && g.dilationW == 1
                 : g.c / g.groups % v == 0)
            return v;
    return 1;
}

char const* unsupportedSizes(ConvShape const& g, int tileN)
{
    constexpr int64_t kLimit = int64_t(1) << 30;
    if (g.n < 1 || g.c < 1 || g.k < 1 || g.groups < 1 || g.c % g.groups || g.k % g.groups || g.groups > 65535)
        return "channels and filters come in whole groups, up to 65535";
    if (g.n * g.outH * g.outW > kLimit || g.h > kLimit || g.w > kLimit || paddedK(g) > kLimit || g.k > kLimit ||
        g.k / g.groups / tileN >= 65535)
        return "sizes count below 2^30";
    return nullptr;
}

} // namespace tw::cuda
