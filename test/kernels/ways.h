// SPDX-License-Identifier: Apache-2.0
// What kernels can be emitted for here.
#pragma once

#include <vector>

#include "device/cpu.h"
#include "kernels/cpu/jit/emitter.h"
#include "kernels/cpu/jit/int8_kernel.h"

namespace tw::kernels::jit {

inline std::vector<Isa> isas()
{
    std::vector<Isa> list;
    device::CpuInfo const cpu = device::probeCpu();
    for (Isa isa : {Isa::kAvx2, Isa::kAvx512})
        if (isaOf(cpu, isa) == isa)
            list.push_back(isa);
    return list;
}

// To multiply integers.
struct Way
{
    Isa isa;
    Dots dots;
};

inline std::vector<Way> ways()
{
    std::vector<Way> list;
    device::CpuInfo const cpu = device::probeCpu();
    for (Isa isa : isas()) {
        list.push_back({isa, Dots::kWords});
        if (dotsOf(cpu, isa) == Dots::kVnni)
            list.push_back({isa, Dots::kVnni});
    }
    if (isaOf(cpu) == Isa::kAvx512 && cpu.avx512vnni)
        list.push_back({Isa::kAvx2, Dots::kVnniWide});
    return list;
}

} // namespace tw::kernels::jit
