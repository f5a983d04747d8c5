// SPDX-License-Identifier: Apache-2.0
// What becomes of sums of i8 of plain convolutions. After integerEndSource().
#pragma once

#include "families/convolution/cuda_plain_convolution_params.h"
#include "kernels/cuda/common/plain_integers.cuh"

namespace tw::ops {

struct FirstEnd; // is part of the end
template <class Activation>
TW_INLINE void finish(PlainConvolutionParams const& p, idx i, off k, i32 sum)
{
    finishSum(p.end, p.y, i64(i), i32(k), sum);
}

} // namespace tw::ops
