// SPDX-License-Identifier: Apache-2.0
// Text of depthwise convolutions by tiles in shared memory, behind include("kernels/cuda/common/matrix.cuh") and activate(). ops/
// cuda_conv_depthwise_tile.cpp fills in $names$ and has the struct of parameters.
#pragma once

namespace tw::cuda {

// The kernel, with a struct Worker for $element$: one of the two behind it.
extern char const *const kDepthwiseTile, *const kDepthwiseTileHalves, *const kDepthwiseTileFloats;

} // namespace tw::cuda
