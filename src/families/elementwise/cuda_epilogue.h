// SPDX-License-Identifier: Apache-2.0
// What the FP16 kernels of kernels/cuda/ (gemm_f16, conv_f16, ...) take from a node: its activation as text, its bias
// as floats.
#pragma once

#include <string>

#include "families/elementwise/activate.h"
#include "tactic/tactic.h"

namespace tw::ops {

// An expression of `float v` for cuda::Epilogue, as exact as results of that type need: f16, i8 of any scale (within
// 1e-6 |v|) or f32. Empty: none.
std::string epilogueActivation(FusedActivation const& activation, DataType type = DataType::kHalf);

// The elements of a constant of FP16 or FP32 as floats, `count` of them with zeros after: bytes for
// CudaKernels::pack().
std::string packFloats(TensorSpec const& constant, int64_t count);

} // namespace tw::ops
