// SPDX-License-Identifier: Apache-2.0
// Rows of z in a buffer that stays in L2: the convolution of one element fills it by a band of rows, the depthwise one
// reads it; rows that the next band needs too are moved to its front. Each worker has a buffer and works on bands that
// follow each other. Both are the emitted kernels of families/convolution/tactics.h.
// Config: {vectors of channels in a tile of z, in a block of y, KiB of a buffer (0: for all rows of a part)}.
#pragma once

#include "tactic/cpu_tactic.h"

namespace tw::ops::expanded_depthwise {

extern CpuFunctions const kBands;

} // namespace tw::ops::expanded_depthwise
