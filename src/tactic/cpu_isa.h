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

// A tactic whose kernels are emitted for an instruction set, that of its name.
class IsaTactic : public Tactic
{
public:
    constexpr IsaTactic(char const* name, int version, kernels::jit::Isa isa)
        : Tactic(name, version, Backend::kCpu), isa_(isa)
    {}
    kernels::jit::Isa isa() const { return isa_; }
    Traits traits() const override { return {.isa = isa_ == kernels::jit::Isa::kAvx512 ? "avx512" : "avx2"}; }

protected:
    ~IsaTactic() = default;
    kernels::jit::Isa isa_;
};

} // namespace tw::ops
