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
};
inline bool isPairs(Factors f)
{
    return f != Factors::kFloat;
}
// Whether this CPU has the instructions; of AMX, whether the process may use them.
bool hasFactors(device::CpuInfo const& cpu, Isa isa, Factors factors);
// Elements of A that a step takes.
inline int elementsOfStep(Factors f)
{
    return f == Factors::kBf16Tiles ? 16 : 1;
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
