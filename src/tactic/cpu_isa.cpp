// SPDX-License-Identifier: Apache-2.0
#include "tactic/cpu_isa.h"

namespace tw::ops {

device::CpuInfo const& thisCpu()
{
    static device::CpuInfo const cpu = device::probeCpu();
    return cpu;
}

Support supportsIsa(kernels::jit::Isa isa)
{
    if (kernels::jit::isaOf(thisCpu(), isa) == isa)
        return Support::yes();
    return Support::no(isa == kernels::jit::Isa::kAvx512 ? "needs a CPU with AVX-512 F, BW, VL and DQ"
                                                         : "needs a CPU with AVX2 and FMA");
}

Support supportsFactors(kernels::jit::Isa isa, kernels::jit::Factors factors)
{
    if (kernels::jit::hasFactors(thisCpu(), isa, factors))
        return Support::yes();
    return Support::no(factors == kernels::jit::Factors::kBf16Tiles
                           ? "needs a CPU with AMX-BF16, and a system that lets the process use it"
                           : "needs a CPU with AVX512-BF16");
}

} // namespace tw::ops
