// SPDX-License-Identifier: Apache-2.0
// quantize and dequantize as generated pointwise kernels: their scales, input 1, as a tensor of x's rank.
#pragma once

#include "families/elementwise/cuda_pointwise.h"

namespace tw::ops {

// For Pointwise::Views.
inline void scaleViews(int32_t axis, RunArgs const& args, Extents& y, Extents* operands)
{
    y = operands[0] = args.inputs[0].dims;
    operands[1] = y;
    for (int d = 0; d < y.rank; ++d)
        operands[1][d] = d == axis ? y[d] : 1;
}

} // namespace tw::ops
