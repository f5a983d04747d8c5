// SPDX-License-Identifier: Apache-2.0
// What kernels can be emitted for here.
#pragma once

#include <vector>

#include "device/cpu.h"
#include "kernels/cpu/jit/emitter.h"
#include "kernels/cpu/jit/factors.h"

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
    Factors factors;
};

inline std::vector<Way> ways()
{
    std::vector<Way> list;
    device::CpuInfo const cpu = device::probeCpu();
    for (Isa isa : isas()) {
        list.push_back({isa, Factors::kByteWords});
        list.push_back({isa, Factors::kBytePairs});
        if (isa == Isa::kAvx2)
            list.push_back({isa, Factors::kByteSigns});
        if (byteFactors(cpu, isa) == Factors::kByteDots)
            list.push_back({isa, Factors::kByteDots});
    }
    if (isaOf(cpu) == Isa::kAvx512 && cpu.avx512vnni)
        list.push_back({Isa::kAvx2, Factors::kByteDotsWide});
    return list;
}

} // namespace tw::kernels::jit
