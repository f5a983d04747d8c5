// SPDX-License-Identifier: Apache-2.0
// What tactics with emitted kernels ask: this CPU, and its instruction sets in words for supports().
#pragma once

#include "device/cpu.h"
#include "kernels/cpu/jit/emitter.h"
#include "kernels/cpu/jit/factors.h"
#include "tactic/tactic.h"

namespace tw::ops {

// Probed once: the instruction is slow in virtual machines, and its answer does not change.
device::CpuInfo const& thisCpu();
Support supportsIsa(kernels::jit::Isa isa);
Support supportsFactors(kernels::jit::Isa isa, kernels::jit::Factors factors);

} // namespace tw::ops
