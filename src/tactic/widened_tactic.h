// SPDX-License-Identifier: Apache-2.0
// Kernels of FP32 for tensors of BF16: what they read becomes FP32 in the workspace, and what they make is rounded
// from there, pixel by pixel where a tensor lies so. Constants become FP32 when a kernel is loaded. Such numbers are exact
// factors for kernels that round theirs to as many bits.
#pragma once

#include "tactic/cpu_tactic.h"

namespace tw::ops {

class WidenedTactic final : public Tactic
{
public:
    // `inner` asks of a constant whether it is known, and nothing about its elements, before it is loaded.
    constexpr WidenedTactic(char const* name, int version, CpuTactic const& inner)
        : Tactic(name, version, Backend::kCpu), inner_(inner)
    {}
    Traits traits() const override { return {.isa = inner_.traits().isa, .type = DataType::kBf16}; }
    Support supports(Problem const& problem) const override;
    std::vector<Formats> formats(Problem const& problem) const override;
    std::vector<Config> configs(Problem const& problem) const override;
    double estimate(Problem const& problem, Config const& config) const override;
    Result<std::unique_ptr<Kernel>> load(Problem const& problem, Config const& config,
                                         std::string const&) const override;

private:
    CpuTactic const& inner_;
};

} // namespace tw::ops
