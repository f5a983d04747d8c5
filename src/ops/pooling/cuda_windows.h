// SPDX-License-Identifier: Apache-2.0
// What the kernels of 2-D windows share, beside the plain one.
#pragma once

#include "ops/pooling/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::pooling {

// Maximum or average, sizes that are counted in 32 bits.
Support supportsWindows(Problem const& problem);

// At the optimum or at the maximum.
Geometry geometryOf(Problem const& problem, bool atMaximum);

// What a thread computes with in windows of linear images, and the constants that go with it: the type, the window but its
// padding.
std::string cellsOf(Problem const& problem);

// EXCLUDES, R, S, STEP_H and STEP_W.
std::string windowOf(Attrs const& attrs);

// CUDA tactics that stand in files of their own.
extern CudaTactic const kNhwc, kNhwcF32, kNhwcI8, kNchw, kBands;

} // namespace tw::ops::pooling
