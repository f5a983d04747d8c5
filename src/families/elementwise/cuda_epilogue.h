// SPDX-License-Identifier: Apache-2.0
// What kernels of sums on a GPU take from a node's epilogue: what follows the sum and its bias as text, the bias as
// floats.
#pragma once

#include <span>
#include <string>

#include "base/step_code.h"
#include "base/types.h"
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

// What CUDA kernels of sums of i8 end with, of one node (families/elementwise/epilogue.h). Its numbers are read where
// the engine put them.

cuda::IntegerEnd integerEndOf(Problem const& problem, Epilogue const& epilogue);
// Of a run; y is the kernel's own matter.
cuda::IntegerEndArgs integerEndArgs(RunArgs const& args);

// Expressions of steps as device code.

// Source of `float name(float v0, float v1, ...)` of so many inputs, as exact as results of type `result` need, with
// what it includes. `rounds`: each step is rounded by itself, as where something is i8
// (docs/adr/0012-int8-in-the-graph.md).
std::string stepsSource(std::string const& name, std::span<ExpressionStep const> steps, int inputs, DataType result,
                        bool rounds);

} // namespace tw::ops
