// SPDX-License-Identifier: Apache-2.0
// Tactics in FP32 for known weights and batches of sequences: a step is a matrix product of all sequences' states, then
// the cells of all gates' sums. Products of x come for a few steps at a time, so that they are still in L2 when the steps
// read them. One for each instruction set; the config is {vectors of the product's tile, 1 where workers share the
// sequences (none waits for another; each reads all weights), 0 where they share the hidden units}.
#pragma once

#include "tactic/cpu_isa.h"
#include "tactic/tactic.h"

namespace tw::ops::recurrence {

class ProductsTactic final : public CpuTactic
{
public:
    constexpr ProductsTactic(char const* name, int version, kernels::jit::Isa isa) : CpuTactic(name, version, isa) {}
    Support supports(Problem const& problem) const override;
    std::vector<Config> configs(Problem const& problem) const override;
    double estimate(Problem const& problem, Config const& config) const override;
    Result<std::unique_ptr<Kernel>> load(Problem const& problem, Config const& config,
                                         std::string const& image) const override;
};

} // namespace tw::ops::recurrence
