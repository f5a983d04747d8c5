// SPDX-License-Identifier: Apache-2.0
// Rows too long for one block: several blocks for each.
#pragma once

#include "tactic/cuda_tactic.h"

namespace tw::ops::layer_norm {

extern CudaTactic const kChunks;

} // namespace tw::ops::layer_norm
