// SPDX-License-Identifier: Apache-2.0
// Tactics of matrix products of i8, by emitted kernels: one for each way of multiplying bytes that CPUs have. The config
// is {vectors of a tile, whether rows of a are copied}.
#pragma once

#include "families/gemm/gemm_tactic.h"
#include "kernels/cpu/int8_gemm.h"
#include "tactic/cpu_isa.h"

namespace tw::ops {

class Int8GemmTactic final : public CpuTactic, public PackingTactic
{
public:
    constexpr Int8GemmTactic(char const* name, int version, kernels::jit::Isa isa, kernels::jit::Dots dots)
        : CpuTactic(name, version, isa), dots_(dots)
    {}
    Support supports(Problem const& problem) const override;
    std::vector<Config> configs(Problem const& problem) const override;
    double estimate(Problem const& problem, Config const& config) const override;
    Result<std::unique_ptr<Kernel>> load(Problem const& problem, Config const& config,
                                         std::string const& image) const override;
    Result<std::unique_ptr<Kernel>> loadShared(Problem const& problem, Config const& config, std::string const& image,
                                               PackedConstants& packed) const override;

private:
    kernels::jit::Dots dots_;
};

} // namespace tw::ops
