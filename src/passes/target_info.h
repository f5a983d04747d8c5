// SPDX-License-Identifier: Apache-2.0
// The machine that an engine is for, as far as passes ask: facts alone. What follows from them for a pass, and the
// numbers that were measured for it, stand in that pass. The builder describes machines (builder/types.h).
#pragma once

#include <cstdint>
#include <variant>

namespace tw::passes {

struct TargetInfo
{
    enum class Isa
    {
        kBaseline, // plain kernels only
        kAvx2,     // with FMA: kernels are emitted from here on
        kAvx512,
    };
    struct Cpu
    {
        Isa isa = Isa::kBaseline;
        int64_t l2Bytes = 512 << 10; // of one core
    };
    struct Gpu
    {
        int capability = 0; // 90
        int multiprocessors = 1;
        int64_t l2Bytes = 0, memoryBytes = 0; // 0: not known, kernels are compiled for a GPU that is not there
    };
    std::variant<Cpu, Gpu> machine = Cpu{};

    Cpu const* cpu() const { return std::get_if<Cpu>(&machine); }
    Gpu const* gpu() const { return std::get_if<Gpu>(&machine); }
    // FP16 pays: a CPU has plain kernels for it and no others.
    bool computesHalf() const { return gpu() != nullptr; }
};

} // namespace tw::passes
