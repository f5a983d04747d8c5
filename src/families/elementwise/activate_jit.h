// SPDX-License-Identifier: Apache-2.0
// The activation at the end of a fused op, as emitted kernels know it.
#pragma once

#include <optional>

#include "families/elementwise/activate.h"
#include "kernels/cpu/jit/activation_kind.h"

namespace tw::ops {

// Nothing where there is no activation.
std::optional<kernels::jit::Activation> jitActivation(FusedActivation const& f);

} // namespace tw::ops
