// SPDX-License-Identifier: Apache-2.0
// The end of a fused op, as emitted kernels know it.
#pragma once

#include <optional>

#include "families/elementwise/epilogue.h"
#include "kernels/cpu/jit/sum_end.h"

namespace tw::ops {

// Nothing where there is no activation.
std::optional<kernels::jit::Activation> jitActivation(FusedActivation const& f);
// What stands behind sums of floats and their bias.
kernels::jit::SumEnd jitEnd(Epilogue const& epilogue);

// Whether a rounding error of what it is applied to may be as large a step of its result: for tactics that round.
bool jumps(kernels::jit::SumEnd const& end);
inline constexpr char kJumps[] = "rounds factors, and what follows the sums jumps";

} // namespace tw::ops
