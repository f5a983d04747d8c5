// SPDX-License-Identifier: Apache-2.0
// CUDA tactics that stand in files of their own.
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops::resize {

extern CudaTactic const kLanes, kNhwc, kNhwcF32, kNhwcI8, kPlanes, kRows, kStrips;

} // namespace tw::ops::resize
