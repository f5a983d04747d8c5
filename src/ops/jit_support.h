// SPDX-License-Identifier: Apache-2.0
// What tactics with emitted kernels ask: this CPU, its instruction sets in words for supports(), and activations as
// kernels know them.
#pragma once

#include "device/cpu.h"
#include "kernels/jit/activation_kind.h"
#include "kernels/jit/emitter.h"
#include "ops/activate.h"
#include "ops/tactic.h"

namespace tw::ops {

// Probed once: the instruction is slow in virtual machines, and its answer does not change.
device::CpuInfo const& thisCpu();
Support supportsIsa(kernels::jit::Isa isa);
std::optional<kernels::jit::Activation> jitActivation(FusedActivation const& f);

} // namespace tw::ops
