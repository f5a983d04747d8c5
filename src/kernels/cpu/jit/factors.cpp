// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/jit/factors.h"

#include "device/cpu.h"

namespace tw::kernels::jit {

bool hasFactors(device::CpuInfo const& cpu, Isa isa, Factors factors)
{
    switch (factors) {
    case Factors::kBf16Dots:
        return isa == Isa::kAvx512 && cpu.avx512bf16;
    case Factors::kBf16Tiles:
        return isa == Isa::kAvx512 && cpu.amxBf16 && device::permitTiles();
    default:
        return true;
    }
}

Factors byteFactors(device::CpuInfo const& cpu, Isa isa, bool isNonNegative)
{
    bool const hasDots = isa == Isa::kAvx512 ? cpu.avx512vnni : cpu.avxVnni;
    return hasDots ? Factors::kByteDots : byteFactors(isa, isNonNegative);
}

Factors byteFactors(Isa isa, bool isNonNegative)
{
    return isNonNegative ? Factors::kBytePairs : isa == Isa::kAvx2 ? Factors::kByteSigns : Factors::kByteWords;
}

} // namespace tw::kernels::jit
