// SPDX-License-Identifier: Apache-2.0
#include "tactic/cpu_tactic.h"

namespace tw::ops {

Error CpuTactic::wrongConfig(std::string const& allowed) const
{
    return invalidArgument(std::string(name()) + ": the plan's configuration is not " + allowed);
}

Traits CpuTactic::traits() const
{
    Traits t = IsaTactic::traits();
    t.rounding = rounding_;
    return t;
}

Support CpuTactic::supports(Problem const& problem) const
{
    if (Support isa = supportsIsa(*problem.target.cpu, isa_); !isa.ok || !does_.supports)
        return isa;
    return does_.supports(*this, problem);
}

Support supportsPositions(CpuTactic const&, Problem const& problem)
{
    Extents const& x = problem.inputs[0].maxDims;
    return x.volume() <= INT32_MAX ? Support::yes()
                                   : Support::no("positions in " + x.str() + " need more than 31 bits");
}

std::vector<Formats> allChannelsLast(CpuTactic const&, Problem const& problem)
{
    return {channelsLastFormats(problem)};
}

device::CpuInfo const& thisCpu()
{
    static device::CpuInfo const cpu = device::probeCpu();
    return cpu;
}

Support supportsIsa(device::CpuInfo const& cpu, kernels::jit::Isa isa)
{
    if (kernels::jit::isaOf(cpu, isa) == isa)
        return Support::yes();
    return Support::no(isa == kernels::jit::Isa::kAvx512 ? "needs a CPU with AVX-512 F, BW, VL and DQ"
                                                         : "needs a CPU with AVX2 and FMA");
}

Support supportsFactors(device::CpuInfo const& cpu, kernels::jit::Isa isa, kernels::jit::Factors factors)
{
    if (kernels::jit::hasFactors(cpu, isa, factors))
        return Support::yes();
    return Support::no(factors == kernels::jit::Factors::kBf16Tiles
                           ? "needs a CPU with AMX-BF16, and a system that lets the process use it"
                           : "needs a CPU with AVX512-BF16");
}

} // namespace tw::ops
