// SPDX-License-Identifier: Apache-2.0
// A plan's choices for one CPU on another one.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "tactic/tactic.h"

namespace tw::runtime {

struct Retargeted
{
    ops::Tactic const* tactic = nullptr;
    ops::Config config;
    bool sameAlgorithm = true; // false: the plan's is not to be had, and this one has the lowest estimate
};

// What computes the problem, in the formats that it has, instead of `planned` (the name and the config that the plan
// holds): the same algorithm for the widest instruction set of this CPU; where that is the planned tactic itself, with
// its config, else with the config that is expected to be fastest on this CPU's caches. Where `own`, the op's tactics,
// has no such tactic that runs here, the one with the lowest estimate. Nothing: there is only the plain one.
std::optional<Retargeted> retarget(std::span<ops::Tactic const* const> own, ops::Problem const& problem,
                                   std::string_view planned, ops::Config const& config);
// The one with the lowest estimate of those that round nothing. Nothing: there is only the plain one.
std::optional<Retargeted> bestByEstimate(std::span<ops::Tactic const* const> own, ops::Problem const& problem);

} // namespace tw::runtime
