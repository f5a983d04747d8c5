// SPDX-License-Identifier: Apache-2.0
// What kernels of sums on a GPU take from a node's epilogue: what follows the sum and its bias as text, the bias as
// floats.
#pragma once

#include <string>

#include "families/elementwise/epilogue.h"
#include "kernels/cuda/common/epilogue.h"
#include "tactic/tactic.h"

namespace tw::ops {

// An expression of `float v` for cuda::Epilogue, as exact as results of that type need: f16, i8 of any scale (within
// 1e-6 |v|) or f32. Empty: none.
std::string epilogueActivation(FusedActivation const& activation, DataType type = DataType::kHalf);

// Source of `float name(float v, float r)`, exact to FP32: what becomes of v, the sum with its bias, and of r, an
// element of the residual, 0 where there is none.
std::string exactEpilogue(Epilogue const& epilogue, bool hasResidual, char const* name = "epilogue");
// Residual, activation and end of a kernel whose results are of that type.
void setEpilogue(cuda::Epilogue& e, Epilogue const& epilogue, bool hasResidual, DataType type = DataType::kHalf);

// The elements of a constant of FP16 or FP32 as floats, `count` of them with zeros after: bytes for
// CudaKernels::pack().
std::string packFloats(TensorSpec const& constant, int64_t count);

} // namespace tw::ops
