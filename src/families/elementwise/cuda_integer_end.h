// SPDX-License-Identifier: Apache-2.0
// What CUDA kernels of sums of i8 end with, of one node (families/elementwise/epilogue.h). Its numbers are read where
// the engine put them.
#pragma once

#include "families/elementwise/epilogue.h"
#include "kernels/cuda/common/integer_end.h"
#include "tactic/tactic.h"

namespace tw::ops {

cuda::IntegerEnd integerEndOf(Problem const& problem, Epilogue const& epilogue);
// Of a run; y is the kernel's own matter.
cuda::IntegerEndArgs integerEndArgs(RunArgs const& args);

} // namespace tw::ops
