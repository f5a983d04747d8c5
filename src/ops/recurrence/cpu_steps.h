// SPDX-License-Identifier: Apache-2.0
// Tactics in FP32 for known weights: the input products of all steps are one matrix product, then come the steps, whose
// hidden units the workers share. One for each instruction set; the config is {vectors of the product's tile}.
#pragma once

#include "tactic/cpu_isa.h"
#include "tactic/tactic.h"

namespace tw::ops::recurrence {

class StepsTactic final : public CpuTactic
{
public:
    constexpr StepsTactic(char const* name, int version, kernels::jit::Isa isa) : CpuTactic(name, version, isa) {}
    Support supports(Problem const& problem) const override;
    std::vector<Config> configs(Problem const& problem) const override;
    double estimate(Problem const& problem, Config const& config) const override;
    Result<std::unique_ptr<Kernel>> load(Problem const& problem, Config const& config,
                                         std::string const& image) const override;
};

} // namespace tw::ops::recurrence
