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

} // namespace tw::ops
