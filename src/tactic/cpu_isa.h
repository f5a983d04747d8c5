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
class CpuTactic : public Tactic
{
public:
    constexpr CpuTactic(char const* name, int version, kernels::jit::Isa isa)
        : Tactic(name, version, Backend::kCpu), isa_(isa)
    {}
    Traits traits() const override { return traitsWith(Rounding::kPlain); }

protected:
    ~CpuTactic() = default;
    Traits traitsWith(Rounding rounding) const
    {
        return {.rounding = rounding, .isa = isa_ == kernels::jit::Isa::kAvx512 ? "avx512" : "avx2"};
    }
    kernels::jit::Isa isa_;
};

} // namespace tw::ops
