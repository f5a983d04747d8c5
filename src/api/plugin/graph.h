// SPDX-License-Identifier: Apache-2.0
// The plugins of a graph on their way from a network through a plan into an engine.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "api/plugin/kernel.h"
#include "passes/pass.h"
#include "plan/plan.h"

namespace tw::api {

bool hasPlugins(ir::Graph const& graph);

// In a network's graph: plugins for this device, in types that they take; conversions stand where these are others than
// the tensors'.
struct PluginTypes
{
    bool half = false;          // permitted; on a GPU it is taken where the plugin leaves the choice
    bool int8 = false;          // the same, for tensors with ranges; taken where the plugin takes nothing else
    bool hasCalibrator = false; // ranges are to come
    passes::Ranges const* ranges = nullptr; // those that are there
    std::set<std::string>* open = nullptr;  // tensors whose scales are needed then
};
Result<void> settlePlugins(ir::Graph& graph, ServicesPtr const& services, PluginTypes const& may);
// Tells plugins of a graph what one step of these integers is worth.
void tellPlugins(ir::Graph& graph, ir::Value const& integers, float scale);
// The dimensions that the profiles allow.
void setPluginRanges(ir::Graph& graph, std::vector<plan::Profile> const& profiles);
// In the contents of a build that is done: what goes into the plan. The plugins, configured and initialized, are an
// engine's if one is made of the plan at once.
Result<PluginList> finishPlugins(plan::Contents& contents, ServicesPtr const& services);
// In contents from a plan, which are not trusted: the plugins, by their creators where `finished` is empty.
Result<void> revivePlugins(plan::Contents const& contents, ServicesPtr const& services, PluginList const& finished);

} // namespace tw::api
