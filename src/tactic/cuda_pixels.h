// SPDX-License-Identifier: Apache-2.0
// Copies of tensors by pixels between memories where those lie differently far apart (tactic/parts.h).
#pragma once

#include "base/result.h"
#include "base/tensor.h"
#include "device/cuda/driver.h"

namespace tw::ops {

// Tensors of one type, format and shape; neither may be empty.
Result<void> copyPixels(cuda::Driver const& driver, TensorRef const& from, TensorRef const& to, CUstream_st* stream);

} // namespace tw::ops
