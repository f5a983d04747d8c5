// SPDX-License-Identifier: Apache-2.0
// The generated plain convolution y = f(conv(x, w) + bias + residual), transposed or not. Not transposed: an implicit matrix product in tiles of 64 channels by 64 positions, or one thread for each
// element where a group has few channels. Float sums.
#pragma once

#include "families/convolution/window.h"
#include "families/elementwise/activate.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops {

// Of a convolution node.
std::unique_ptr<CudaKernels> convolveKernels(Problem const& problem, Config const& config);

// y = g(conv(z, w2) + b2) of z = f(conv(x, w1) + b1), which lies in the workspace: one launch each. Inputs x, w1
// [m, c, 1, 1], b1, w2, b2; the attributes are those of the second.
std::unique_ptr<CudaKernels> convolveTwiceKernels(Problem const& problem, FusedActivation const& inner,
                                                  FusedActivation const& outer);

} // namespace tw::ops
