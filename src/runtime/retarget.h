// SPDX-License-Identifier: Apache-2.0
// A plan's choices for one CPU on another one.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ir/graph.h"
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

// Makes a kernel that knows only linear tensors run on others: an engine that was tuned elsewhere runs on plain
// kernels, whatever formats its values have.
std::unique_ptr<ops::Kernel> linearAdapter(std::unique_ptr<ops::Kernel> kernel);

// Reformats in a graph, and a graph whose formats were chosen for another device.

// A node before `position` that copies `v` into another format; it comes from no layer. Its output.
ir::Value* addReformat(ir::Graph& graph, ir::Value& v, Format to, int position, std::string name);

// Everything linear, but the network's inputs and outputs, which clients know: these keep their formats after
// reformats.
void makeLinear(ir::Graph& graph);

} // namespace tw::runtime
