// SPDX-License-Identifier: Apache-2.0
// Machine code made at load time: which instruction set it may use, and the memory that holds it. Kernels are emitted
// by the .cpp files of this folder (Xbyak stays there); their headers say only what a kernel takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/result.h"

namespace tw::device {
struct CpuInfo;
}

namespace tw::kernels::jit {

enum class Isa : int
{
    kAvx2 = 0,   // AVX2, FMA: 16 registers of 8 floats
    kAvx512 = 1, // AVX-512 F, BW, VL, DQ: 32 registers of 16 floats
};

// The best one that this CPU has and `highest` allows; none: this CPU runs plain kernels only.
std::optional<Isa> isaOf(device::CpuInfo const& cpu, Isa highest = Isa::kAvx512);
inline int vectorWidth(Isa isa) // floats
{
    return isa == Isa::kAvx512 ? 16 : 8;
}
char const* isaName(Isa isa); // "avx2", "avx512": the end of tactic names

// One emitted function. Its pages are written first and made executable then, never both at once. Equal functions, of
// which networks have many, are one in memory.
class Code
{
public:
    static Result<Code> make(uint8_t const* bytes, size_t sizeBytes);
    template <class F>
    F entry() const
    {
        return reinterpret_cast<F>(const_cast<void*>(memory_.get()));
    }
    size_t sizeBytes() const { return sizeBytes_; }

private:
    std::shared_ptr<void const> memory_;
    size_t sizeBytes_ = 0;
};

// A function of these arguments that was emitted.
template <class Args>
class Emitted
{
public:
    void operator()(Args const& args) const { code_.entry<void (*)(Args const*)>()(&args); }
    explicit operator bool() const { return code_.sizeBytes() != 0; }

protected:
    Code code_;
};

} // namespace tw::kernels::jit
