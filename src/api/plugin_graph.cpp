// SPDX-License-Identifier: Apache-2.0
#include "api/plugin_graph.h"

#include <algorithm>
#include <optional>

#include "api/network.h"
#include "ir/shape_values.h"
#include "ops/identity/op.h"
#include "runtime/profile_ranges.h"
#include "tactic/registry.h"

namespace tw::api {

using ops::plugin::Attrs;

namespace {

bool isPlugin(ir::Node const& n)
{
    return n.op == &ops::plugin::def();
}

// Calls f(graph, node) for every plugin, in the order of nodes, outer graphs first.
template <class F>
Result<void> forEach(ir::Graph& g, F const& f)
{
    std::vector<ir::Node*> nodes; // f may add some
    for (auto const& n : g.nodes)
        nodes.push_back(n.get());
    for (ir::Node* n : nodes) {
        if (isPlugin(*n))
            TW_TRY(f(g, *n));
        for (auto const& r : n->regions)
            TW_TRY(forEach(*r, f));
        if (n->body)
            TW_TRY(forEach(*n->body, f));
    }
    return {};
}

std::string textOf(PluginTensors const& t)
{
    std::string text;
    for (int32_t i = 0; i < int32_t(t.descs.size()); ++i)
        text += std::string(i == 0          ? (t.inputs > 0 ? "inputs " : "outputs ")
                            : i == t.inputs ? "; outputs "
                                            : ", ") +
                nameOf(toCore(t.descs[size_t(i)].type)) + str(t.descs[size_t(i)].dims);
    return text;
}

// Types that each tensor may have.
std::vector<std::vector<DataType>> typesFor(PluginTensors const& t, bool half, bool prefersHalf)
{
    std::vector<std::vector<DataType>> types;
    for (auto const& d : t.descs) {
        DataType const own = toCore(d.type);
        types.push_back({own});
        if (own == DataType::kHalf)
            types.back().push_back(DataType::kFloat);
        if (own == DataType::kFloat && half)
            types.back().insert(prefersHalf ? types.back().begin() : types.back().end(), DataType::kHalf);
    }
    return types;
}

Result<ir::Value*> cast(ir::Graph& g, ir::Value* v, DataType type, ir::Node const& plugin, int position)
{
    TW_ASSIGN(ir::Node * node, g.addNode(ops::identity::def(), ops::identity::Attrs(type).clone(), {v},
                                         plugin.name + " [" + v->name + " to " + nameOf(type) + "]", {}, position));
    node->layers = plugin.layers;
    return node->outputs[0];
}

Result<void> changeInput(ir::Graph& g, ir::Node& n, size_t i, DataType type)
{
    TW_ASSIGN(n.inputs[i], cast(g, n.inputs[i], type, n, g.positionOf(&n)));
    n.attrsAs<Attrs>().inputTypes[i] = int64_t(type);
    return {};
}

// The value in its old type takes over the name and all readers.
Result<void> changeOutput(ir::Graph& g, ir::Node& n, size_t i, DataType type)
{
    ir::Value* const v = n.outputs[i];
    DataType const before = v->type;
    v->type = type;
    n.attrsAs<Attrs>().outputTypes[i] = int64_t(type);
    TW_ASSIGN(ir::Value * y, cast(g, v, before, n, g.positionOf(&n) + 1));
    g.replaceAllUses(v, y);
    y->producer->inputs[0] = v;
    y->name = v->name;
    y->host = v->host;
    y->quantization = v->quantization;
    v->name += " [plugin]";
    v->quantization.reset();
    return {};
}

Result<void> changeTypes(ir::Graph& g, ir::Node& n, PluginTensors const& t)
{
    for (size_t i = 0; i < t.descs.size(); ++i) {
        DataType const type = toCore(t.descs[i].type);
        bool const isInput = int32_t(i) < t.inputs;
        size_t const k = isInput ? i : i - size_t(t.inputs);
        if (type == (isInput ? n.inputs[k] : n.outputs[k])->type)
            continue;
        TW_TRY(isInput ? changeInput(g, n, k, type) : changeOutput(g, n, k, type));
    }
    return {};
}

Error noTypes(PluginObject const& plugin, PluginTensors const& tensors, bool half)
{
    std::string const what =
        plugin.where() + ": the plugin takes none of the types and formats that are possible for " + textOf(tensors);
    PluginTensors inHalf = tensors;
    bool const wouldTake = !half && settleTypes(plugin, inHalf, typesFor(tensors, true, false));
    return unsupported(what + (wouldTake ? "; it takes FP16: set BuilderFlag::kFP16"
                                         : " (supportsFormatCombination() or supportsFormat() said no to all)"));
}

Result<void> settle(ir::Graph& g, ir::Node& n, ServicesPtr const& services, bool half, bool prefersHalf)
{
    auto const* network = dynamic_cast<NetworkPlugin const*>(n.attrsAs<Attrs>().object.get());
    if (!network)
        return internalError(ops::plugin::describe(n) + " is not of a network");
    PluginPtr const plugin = network->plugin;
    PluginTensors t = tensorsOf(n);
    PluginTensors const asked = t;
    bool const prefers = n.precision.byUser ? n.precision.value == DataType::kHalf : prefersHalf;
    auto const types = typesFor(t, half, prefers);
    if (!settleTypes(*plugin, t, types))
        return noTypes(*plugin, asked, half);
    n.attrsAs<Attrs>().object = std::make_shared<BuildPlugin>(plugin, services);
    return changeTypes(g, n, t);
}

} // namespace

bool hasPlugins(ir::Graph const& graph)
{
    return !forEach(const_cast<ir::Graph&>(graph), [](ir::Graph&, ir::Node&) -> Result<void> {
                return internalError("there is one");
            }).ok();
}

Result<void> settlePlugins(ir::Graph& graph, ServicesPtr const& services, bool half)
{
    return forEach(graph, [&](ir::Graph& g, ir::Node& n) -> Result<void> {
        auto const shapes = ir::shapeValues(g);
        for (ir::Value const* v : n.outputs)
            if (shapes.contains(v))
                return unsupported(
                    ops::plugin::describe(n) + ": its output '" + v->name +
                    "' decides the shape of something; plugins cannot make shape tensors (a dimension of "
                    "an empty output can carry a number)");
        return settle(g, n, services, half, half && services->gpu);
    });
}

void setPluginRanges(ir::Graph& graph, std::vector<plan::Profile> const& profiles)
{
    ir::SymbolTable const outer = runtime::symbolRanges(graph, profiles);
    auto const done = forEach(graph, [&](ir::Graph& g, ir::Node& n) -> Result<void> {
        auto& a = n.attrsAs<Attrs>();
        a.least.clear();
        a.most.clear();
        for (auto const* list : {&n.inputs, &n.outputs})
            for (ir::Value const* v : *list)
                for (ir::Dim const& d : v->shape) {
                    ir::Range const r = d.range(&g == &graph ? outer : g.symbols);
                    a.least.push_back(std::clamp<int64_t>(r.lo, 0, INT32_MAX));
                    a.most.push_back(std::clamp<int64_t>(r.hi, 0, INT32_MAX));
                }
        return {};
    });
    TW_CHECK(done.ok());
}

Result<PluginList> finishPlugins(ir::Graph& graph, ServicesPtr const& services)
{
    PluginList finished;
    TW_TRY(forEach(graph, [&](ir::Graph&, ir::Node& n) -> Result<void> {
        auto& a = n.attrsAs<Attrs>();
        auto const* built = dynamic_cast<BuildPlugin const*>(a.object.get());
        if (!built)
            return internalError(ops::plugin::describe(n) + " is not of a build");
        PluginTensors const tensors = tensorsOf(n);
        TW_ASSIGN(PluginPtr own, built->plugin->clone(services->device()));
        own->configure(tensors);
        TW_TRY(own->initialize());
        TW_ASSIGN(a.workspaceBytes, own->workspaceBytes(tensors));
        TW_ASSIGN(a.state.bytes, own->serialize());
        a.formats.clear();
        for (auto const& d : tensors.descs)
            a.formats.push_back(int64_t(d.format));
        finished.push_back(std::move(own));
        return {};
    }));
    return finished;
}

namespace {

Result<PluginPtr> deserialize(ir::Node const& n, PluginServices const& services)
{
    auto const& s = n.attrsAs<Attrs>().state;
    std::string const layer = n.layers.empty() ? n.name : n.layers[0];
    nvinfer1::IPluginCreator* const creator =
        getPluginRegistry()->getPluginCreator(s.type.c_str(), s.version.c_str(), s.nameSpace.c_str());
    if (!creator)
        return Error{ErrorCode::kInvalidState,
                     "getPluginCreator() could not find Plugin " + s.type + " version " + s.version +
                         (s.nameSpace.empty() ? "" : " namespace " + s.nameSpace) + " for layer '" + layer +
                         "' of the engine: load the library that registers it (initLibNvInferPlugins, dlopen, trtexec "
                         "--plugins) before the engine is deserialized"};
    std::lock_guard const lock(pluginMutex());
    std::optional<cuda::Current> current;
    if (services.gpu)
        current.emplace(*services.gpu->device);
    nvinfer1::IPluginV2* const plugin = creator->deserializePlugin(layer.c_str(), s.bytes.data(), s.bytes.size());
    if (!plugin)
        return Error{ErrorCode::kFailedInitialization,
                     ops::plugin::describe(n) + ": deserializePlugin() of its creator gave a null pointer for " +
                         std::to_string(s.bytes.size()) + " bytes"};
    plugin->setPluginNamespace(s.nameSpace.c_str());
    return PluginObject::own(plugin, layer, services.device());
}

Result<void> checkRevived(ir::Node const& n, PluginObject const& plugin)
{
    auto const& a = n.attrsAs<Attrs>();
    if (plugin.interface() != a.interface)
        return invalidState(
            ops::plugin::describe(n) + ": the plan was built with interface " + std::to_string(int(a.interface)) +
            " (IPluginV2, Ext, IOExt, DynamicExt), the creator makes " + std::to_string(int(plugin.interface())));
    int32_t const outputs = plugin.get().getNbOutputs();
    if (outputs != int32_t(a.outputTypes.size()))
        return invalidState(ops::plugin::describe(n) + ": the plan has " + std::to_string(a.outputTypes.size()) +
                            " outputs, the plugin " + std::to_string(outputs));
    return {};
}

} // namespace

Result<void> revivePlugins(ir::Graph& graph, ServicesPtr const& services, PluginList const& finished)
{
    if (!hasPlugins(graph))
        return {};
    TW_TRY(ir::verify(graph)); // before creators see any of it
    size_t next = 0;
    return forEach(graph, [&](ir::Graph&, ir::Node& n) -> Result<void> {
        PluginPtr plugin;
        if (next < finished.size()) {
            plugin = finished[next++];
        } else {
            TW_ASSIGN(plugin, deserialize(n, *services));
            TW_TRY(checkRevived(n, *plugin));
            TW_TRY(plugin->initialize());
        }
        n.attrsAs<Attrs>().object = std::make_shared<EnginePlugin>(std::move(plugin), services);
        return {};
    });
}

} // namespace tw::api
