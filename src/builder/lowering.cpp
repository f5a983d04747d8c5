// SPDX-License-Identifier: Apache-2.0
#include "builder/lowering.h"

#include <algorithm>
#include <set>
#include <utility>

#include "builder/types.h"
#include "device/cuda/target.h"
#include "ir/shape_values.h"
#include "ops/identity/op.h"
#include "tactic/cpu_tactic.h"
#include "tactic/registry.h"

namespace tw::builder {

namespace {

// Outputs lie where the client is told: a GPU gets a copy of those that decide shapes as well, or are computed as shapes
// are, but are data to the client.
Result<void> copyToDevice(ir::Graph& graph, std::set<ir::Value const*> const& onHost)
{
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
        ir::Value* const v = graph.outputs[i];
        if (v->host || !onHost.contains(v) || !(v->producer || v->isConstant()))
            continue;
        TW_ASSIGN(ir::Node * copy,
                  graph.addNode(ops::identity::def(), ops::identity::Attrs().clone(), {v}, v->name + " [output]"));
        copy->outputs[0]->name = std::exchange(v->name, v->name + " [host]");
        graph.outputs[i] = copy->outputs[0];
    }
    return {};
}

// What writes in place comes after all other readers of what it writes over, but for those that need what it gives: a client may
// give an input and the output that is its changed copy one address, and a loop does so with what it carries.
void writeLast(ir::Graph& graph)
{
    for (auto const& n : graph.nodes)
        for (auto const& region : n->regions)
            writeLast(*region);
    auto const writes = [](auto const& n) { return !n->op->inPlace.empty(); };
    if (std::ranges::none_of(graph.nodes, writes))
        return;
    for (size_t i = graph.nodes.size(); i-- > 0;) {
        ir::Node const* const node = graph.nodes[i].get();
        if (!writes(graph.nodes[i]))
            continue;
        size_t to = i; // as late as possible: in front of the first that reads what it gives
        auto const reads = [&](ir::Node const& other) {
            return std::ranges::any_of(other.inputs, [&](ir::Value const* v) { return v && v->producer == node; });
        };
        while (to + 1 < graph.nodes.size() && !reads(*graph.nodes[to + 1]))
            ++to;
        std::rotate(graph.nodes.begin() + int64_t(i), graph.nodes.begin() + int64_t(i) + 1,
                    graph.nodes.begin() + int64_t(to) + 1);
    }
}

// Shape tensors among the outputs, and all that decides shapes, stand on the host. Inputs lie where the client was told.
Result<void> schedule(ir::Graph& graph, plan::Contents const& contents, bool isForGpu)
{
    for (ir::Value* v : graph.outputs)
        v->host = v->host || std::ranges::any_of(contents.io, [&](plan::IoTensor const& t) {
                      return !t.isInput && t.isShapeTensor && t.name == v->name;
                  });
    auto const onHost = ir::hostValues(graph);
    if (isForGpu)
        TW_TRY(copyToDevice(graph, onHost));
    for (ir::Value const* v : onHost)
        if (v->producer || v->isConstant())
            const_cast<ir::Value*>(v)->host = true;
    writeLast(graph);
    graph.form = ir::Form::kScheduled;
    return ir::verify(graph);
}

// Without the choice of types where the clock is asked.
passes::Options passOptions(Options const& options)
{
    passes::Options list = options.passes;
    if (choosesTypes(options))
        list.disabled.push_back(kTypesPass);
    return list;
}

} // namespace

passes::PassContext passContext(Options const& options, Log& log)
{
    return {{.target = describe({.cuda = options.cuda.get()}),
             .permits = options.tune.permits,
             .constraints = options.constraints,
             .recipes = options.recipes,
             .ranges = options.ranges.empty() ? nullptr : &options.ranges,
             .firstProfile = options.firstProfile.empty() ? nullptr : &options.firstProfile,
             .workers = options.tune.buildWorkers},
            log};
}

Result<std::vector<passes::Alternative>> lower(plan::Contents& contents, Options const& options, Log& log)
{
    passes::Options const list = passOptions(options);
    TW_ASSIGN(auto alternatives, passes::run(*contents.graph, passContext(options, log), list));
    TW_TRY(schedule(*contents.graph, contents, options.cuda != nullptr));
    for (passes::Alternative const& a : alternatives)
        TW_TRY(schedule(*a.graph, contents, options.cuda != nullptr));
    return alternatives;
}

Result<std::unique_ptr<ir::Graph>> lowerWithFloats(plan::Contents const& contents,
                                                   passes::Alternative const& alternative,
                                                   std::set<std::string> const& layers, Options const& options)
{
    std::unique_ptr<ir::Graph> graph = alternative.before->clone();
    passes::Options list = passOptions(options);
    list.startAt = alternative.without;
    list.dumpFolder = nullptr;
    list.givesAlternatives = false;
    NullLog quiet;
    passes::PassContext context = passContext(options, quiet);
    context.floatLayers = &layers;
    TW_TRY(passes::run(*graph, context, list));
    TW_TRY(schedule(*graph, contents, options.cuda != nullptr));
    return graph;
}

Result<void> lowerTyped(ir::Graph& graph, Options const& options, Log& log)
{
    passes::Options list = options.passes;
    list.startAt = kTypesPass;
    list.disabled.push_back(kTypesPass);
    list.dumpFolder = nullptr;
    TW_TRY(passes::run(graph, passContext(options, log), list));
    return {};
}

} // namespace tw::builder
