// SPDX-License-Identifier: Apache-2.0
// What the products of gemm_kernel.h multiply.
#pragma once

#include "kernels/cpu/jit/emitter.h"

namespace tw::kernels::jit {

// What is multiplied, and by which instructions.
enum class Factors : int
{
    kFloat,
    kBf16Shifts, // each number of a pair made a float: any Isa
    kBf16Dots,   // vdpbf16ps: Isa::kAvx512 with AVX512-BF16
    kBf16Tiles,  // tdpbf16ps: the same Isa with AMX; called within a TileScope
    // Four bytes at a time, with exact sums:
    kByteWords,    // as 16 bits (vpmaddwd): any CPU of the Isa
    kByteSigns,    // |a| by b or -b - 1 (vpmaddubsw), each row with a start value: Isa::kAvx2
    kBytePairs,    // no a is below 0 (vpmaddubsw): any CPU of the Isa
    kByteDots,     // vpdpbusd: AVX512-VNNI with Isa::kAvx512, AVX-VNNI with Isa::kAvx2
    kByteDotsWide, // Isa::kAvx2's registers, AVX-512's encoding: how tests run kByteDots on CPUs without AVX-VNNI
    kWordPairs,    // two numbers at a time, which both operands hold as 16 bits (vpmaddwd): any CPU of the Isa
};
inline bool isBytes(Factors f)
{
    return f >= Factors::kByteWords;
}
inline bool isPairs(Factors f)
{
    return f != Factors::kFloat && !isBytes(f);
}
// The best ones for bytes of this CPU. isNonNegative: no a is below 0.
Factors byteFactors(device::CpuInfo const& cpu, Isa isa, bool isNonNegative = false);
// Of CPUs without dot products.
Factors byteFactors(Isa isa, bool isNonNegative);
// Whether this CPU has the instructions; of AMX, whether the process may use them.
bool hasFactors(device::CpuInfo const& cpu, Isa isa, Factors factors);
// Elements of A that a step takes.
inline int elementsOfStep(Factors f)
{
    return f == Factors::kBf16Tiles ? 16 : 1;
}
inline bool isBytePairs(Factors f)
{
    return f == Factors::kByteSigns || f == Factors::kBytePairs;
}
// Numbers of bytes that a step takes.
inline int bytesOfStep(Factors f)
{
    return f == Factors::kWordPairs ? 2 : 4;
}
// Whether sums begin with start values (gemm_kernel.h) that are not zero.
inline bool offsetsBytes(Factors f)
{
    return f == Factors::kByteDots || f == Factors::kByteDotsWide;
}

// The registers of AMX of this thread in the shape that kernels with tiles expect; given back at the end. Nothing for
// other factors.
class TileScope
{
public:
    explicit TileScope(Factors factors);
    ~TileScope();
    TileScope(TileScope const&) = delete;
    TileScope& operator=(TileScope const&) = delete;

private:
    bool active_;
};

} // namespace tw::kernels::jit
