// SPDX-License-Identifier: Apache-2.0
// The activation at the end of a fused op, as emitted kernels know it.
#pragma once

#include <optional>

#include "families/elementwise/activate.h"
#include "kernels/cpu/jit/activation_kind.h"

namespace tw::ops {

// Nothing where there is no activation.
std::optional<kernels::jit::Activation> jitActivation(FusedActivation const& f);

// Whether a rounding error of what it is applied to may be as large a step of its result: for tactics that round.
inline bool jumps(std::optional<kernels::jit::Activation> const& a)
{
    return a && a->kind == kernels::jit::ActivationKind::kThresholdedRelu;
}
inline constexpr char kJumps[] = "rounds factors, and its activation jumps at the threshold";

} // namespace tw::ops
