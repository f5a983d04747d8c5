// SPDX-License-Identifier: Apache-2.0
// Sizes of the products and convolutions that wgmma is measured on.
#pragma once

#include "kernels/cuda/gemm/wgmma.h"

namespace bench {

inline tw::cuda::gemm_f16::Shape shape(int64_t m, int64_t n, int64_t k)
{
    tw::cuda::gemm_f16::Shape g;
    g.m = m;
    g.n = n;
    g.k = k;
    return g;
}

// Square images and windows: c channels of hw x hw, k filters of rs x rs.
inline tw::cuda::gemm_f16::Shape image(int64_t n, int64_t hw, int64_t c, int64_t k, int64_t rs, int stride, int pad)
{
    tw::cuda::gemm_f16::Image i;
    i.n = n;
    i.h = i.w = hw;
    i.c = c;
    i.r = i.s = rs;
    i.strideH = i.strideW = stride;
    i.padH = i.padW = pad;
    i.outH = i.outW = (hw + 2 * pad - rs) / stride + 1;
    return tw::cuda::gemm_f16::imageShape(i, k);
}

// With as many pixels out as in, where the stride is 1.
inline tw::cuda::gemm_f16::Shape image(int64_t n, int64_t hw, int64_t c, int64_t k, int64_t rs, int stride)
{
    return image(n, hw, c, k, rs, stride, int(rs / 2));
}

} // namespace bench
