// SPDX-License-Identifier: Apache-2.0
// Plugins as kernels: of a build, for which each kernel has a clone, and of an engine, whose plugin all contexts clone or
// share.
#pragma once

#include "api/plugin/object.h"
#include "api/plugin/services.h"
#include "tactic/per_context.h"

namespace tw::api {

using PluginPtr = std::shared_ptr<PluginObject>;
using PluginList = std::vector<PluginPtr>;
using ServicesPtr = std::shared_ptr<PluginServices>;

// What a plugin is told of its tensors in a problem's types and formats.
PluginTensors tensorsOf(ops::Problem const& problem);
// The same of a node of a finished graph.
PluginTensors tensorsOf(ir::Node const& node);
// Sets types and formats that the plugin takes, of the types that each tensor may have; false: there are none. The first
// of each list is preferred.
bool settleTypes(PluginObject const& plugin, PluginTensors& tensors, std::vector<std::vector<DataType>> const& types);

// In a network that is defined, before its device is known: a place for the plugin.
class NetworkPlugin final : public ops::plugin::Object
{
public:
    explicit NetworkPlugin(PluginPtr p) : plugin(std::move(p)) {}
    bool isOnHost() const override { return true; }
    std::vector<ops::Formats> formats(ops::Problem const&) const override { return {}; }
    Result<std::unique_ptr<ops::Kernel>> load(ops::Problem const& problem) const override;
    PluginPtr const plugin;
};

class BuildPlugin final : public ops::plugin::Object
{
public:
    BuildPlugin(PluginPtr p, ServicesPtr s) : plugin(std::move(p)), services_(std::move(s)) {}
    bool isOnHost() const override { return !services_->gpu; }
    std::vector<ops::Formats> formats(ops::Problem const& problem) const override;
    Result<std::unique_ptr<ops::Kernel>> load(ops::Problem const& problem) const override;
    PluginPtr const plugin; // of the network: configured by nobody

private:
    ServicesPtr services_;
};

class EnginePlugin final : public ops::plugin::Object
{
public:
    EnginePlugin(PluginPtr p, ServicesPtr s) : plugin_(std::move(p)), services_(std::move(s)) {}
    bool isOnHost() const override { return !services_->gpu; }
    std::vector<ops::Formats> formats(ops::Problem const& problem) const override; // the plan's
    Result<std::unique_ptr<ops::Kernel>> load(ops::Problem const& problem) const override;

private:
    PluginPtr plugin_; // initialized
    ServicesPtr services_;
};

} // namespace tw::api
