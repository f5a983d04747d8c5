// SPDX-License-Identifier: Apache-2.0
#include "api/plugin/graph.h"

#include <algorithm>
#include <optional>

#include "NvInferConsistency.h"
#include "api/network/network.h"
#include "api/network/ranges.h"
#include "api/plugin/registry.h"
#include "ir/shape_values.h"
#include "ops/dequantize/op.h"
#include "ops/identity/op.h"
#include "ops/quantize/op.h"
#include "runtime/profile_shapes.h"
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

// Of its k-th tensor, outputs behind inputs.
ir::Value* tensorOf(ir::Node const& n, size_t k)
{
    return k < n.inputs.size() ? n.inputs[k] : n.outputs[k - n.inputs.size()];
}

bool hasRange(PluginTypes const& may, ir::Value const& v)
{
    return may.ranges && may.ranges->contains(v.name);
}
float scaleOf(PluginTypes const& may, ir::Value const& v)
{
    return hasRange(may, v) ? float(may.ranges->at(v.name)) : 1.0F;
}

// Types that each tensor may have.
std::vector<std::vector<DataType>> typesFor(ir::Node const& n, PluginObject const& plugin, PluginTensors const& t,
                                            PluginTypes const& may, bool prefersHalf)
{
    bool const half = may.half;
    std::vector<std::vector<DataType>> types;
    for (size_t k = 0; k < t.descs.size(); ++k) {
        DataType const own = toCore(t.descs[k].type);
        types.push_back({own});
        if (isNarrowFloat(own))
            types.back().push_back(DataType::kFloat);
        if (isFullFloat(own) && half)
            types.back().insert(prefersHalf ? types.back().begin() : types.back().end(), DataType::kHalf);
        bool const mayHaveScale = may.hasCalibrator || hasRange(may, *tensorOf(n, k));
        if (isFullFloat(own) && may.int8 && mayHaveScale && plugin.isAskedOneByOne())
            types.back().push_back(DataType::kInt8);
    }
    return types;
}

// One step of a tensor's integers: of its dynamic range, or 1 and open.
ir::Value* stepOf(ir::Graph& g, ir::Value const& floats, PluginTypes const& may)
{
    if (!hasRange(may, floats))
        may.open->insert(floats.name);
    return scaleConstant(g, floats.name, scaleOf(may, floats));
}

Result<ir::Value*> cast(ir::Graph& g, ir::Value* v, DataType type, ir::Node const& plugin, int position)
{
    TW_ASSIGN(ir::Node * node, g.addNode(ops::identity::def(), ops::identity::Attrs(type).clone(), {v},
                                         plugin.name + " [" + v->name + " to " + nameOf(type) + "]", {}, position));
    node->layers = plugin.layers;
    return node->outputs[0];
}

Result<void> changeInput(ir::Graph& g, ir::Node& n, size_t i, DataType type, PluginTypes const& may)
{
    if (isQuantized(type)) {
        ir::Value& x = *n.inputs[i];
        ir::Value* const scale = stepOf(g, x, may);
        TW_ASSIGN(ir::Node * q, g.addNode(ops::quantize::def(), std::make_unique<ops::quantize::Attrs>(), {&x, scale},
                                          n.name + " [" + x.name + " to " + nameOf(type) + "]", {}, g.positionOf(&n)));
        q->layers = n.layers;
        n.inputs[i] = q->outputs[0];
        n.attrsAs<Attrs>().inputTypes[i] = int64_t(type);
        return {};
    }
    TW_ASSIGN(n.inputs[i], cast(g, n.inputs[i], type, n, g.positionOf(&n)));
    n.attrsAs<Attrs>().inputTypes[i] = int64_t(type);
    return {};
}

// The value in its old type takes over the name and all readers.
Result<void> changeOutput(ir::Graph& g, ir::Node& n, size_t i, DataType type, PluginTypes const& may)
{
    ir::Value* const v = n.outputs[i];
    DataType const before = v->type;
    v->type = type;
    n.attrsAs<Attrs>().outputTypes[i] = int64_t(type);
    ir::Value* y = nullptr;
    if (isQuantized(type)) {
        TW_ASSIGN(ir::Node * d,
                  g.addNode(ops::dequantize::def(), std::make_unique<ops::dequantize::Attrs>(), {v, stepOf(g, *v, may)},
                            n.name + " [" + v->name + " to " + nameOf(before) + "]", {}, g.positionOf(&n) + 1));
        d->layers = n.layers;
        y = d->outputs[0];
    } else {
        TW_ASSIGN(y, cast(g, v, before, n, g.positionOf(&n) + 1));
    }
    g.replaceAllUses(v, y);
    y->producer->inputs[0] = v;
    y->name = v->name;
    y->host = v->host;
    v->name += " [plugin]";
    return {};
}

Result<void> changeTypes(ir::Graph& g, ir::Node& n, PluginTensors const& t, PluginTypes const& may)
{
    for (size_t i = 0; i < t.descs.size(); ++i) {
        DataType const type = toCore(t.descs[i].type);
        bool const isInput = int32_t(i) < t.inputs;
        size_t const k = isInput ? i : i - size_t(t.inputs);
        if (type == (isInput ? n.inputs[k] : n.outputs[k])->type)
            continue;
        TW_TRY(isInput ? changeInput(g, n, k, type, may) : changeOutput(g, n, k, type, may));
    }
    return {};
}

Error noTypes(ir::Node const& n, PluginObject const& plugin, PluginTensors const& tensors, PluginTypes const& may)
{
    std::string const what =
        plugin.where() + ": the plugin takes none of the types and formats that are possible for " + textOf(tensors);
    auto wouldTake = [&](PluginTypes const& others) {
        PluginTensors t = tensors;
        return settleTypes(plugin, t, typesFor(n, plugin, tensors, others, false));
    };
    if (!may.half && wouldTake({.half = true}))
        return unsupported("{}; it takes FP16: set BuilderFlag::kFP16", what);
    if (!wouldTake({.half = may.half, .int8 = true, .hasCalibrator = true}))
        return unsupported("{} (supportsFormatCombination() or supportsFormat() said no to all)", what);
    std::string without;
    for (size_t k = 0; k < tensors.descs.size(); ++k)
        if (ir::Value const& v = *tensorOf(n, k); isFullFloat(v.type) && !hasRange(may, v))
            without += (without.empty() ? "'" : ", '") + v.name + "'";
    return unsupported("{}; it takes INT8: {}give ranges to {} by ITensor::setDynamicRange() or a calibration cache",
                       what, may.int8 ? std::string() : "set BuilderFlag::kINT8, without Q/DQ layers, and ",
                       without.empty() ? "its tensors" : without);
}

Result<void> settle(ir::Graph& g, ir::Node& n, ServicesPtr const& services, PluginTypes const& may, bool prefersHalf)
{
    auto const* network = dynamic_cast<NetworkPlugin const*>(n.attrsAs<Attrs>().object.get());
    if (!network)
        return internalError("{} is not of a network", ops::plugin::describe(n));
    PluginPtr const plugin = network->plugin;
    std::vector<float> scales;
    for (size_t k = 0; k < n.inputs.size() + n.outputs.size(); ++k)
        scales.push_back(scaleOf(may, *tensorOf(n, k)));
    n.attrsAs<Attrs>().scales = std::move(scales);
    PluginTensors t = tensorsOf(n);
    PluginTensors const asked = t;
    bool const prefers = n.precision.byUser ? isNarrowFloat(n.precision.value) : prefersHalf;
    auto const types = typesFor(n, *plugin, t, may, prefers);
    if (!settleTypes(*plugin, t, types))
        return noTypes(n, *plugin, asked, may);
    n.attrsAs<Attrs>().object = std::make_shared<BuildPlugin>(plugin, services);
    return changeTypes(g, n, t, may);
}

} // namespace

bool hasPlugins(ir::Graph const& graph)
{
    return !forEach(const_cast<ir::Graph&>(graph), [](ir::Graph&, ir::Node&) -> Result<void> {
                return internalError("there is one");
            }).ok();
}

Result<void> settlePlugins(ir::Graph& graph, ServicesPtr const& services, PluginTypes const& may)
{
    return forEach(graph, [&](ir::Graph& g, ir::Node& n) -> Result<void> {
        auto const shapes = ir::shapeValues(g);
        for (ir::Value const* v : n.outputs)
            if (shapes.contains(v))
                return unsupported("{}: its output '{}' decides the shape of something; plugins cannot make shape "
                                   "tensors (a dimension of an empty output can carry a number)",
                                   ops::plugin::describe(n), v->name);
        return settle(g, n, services, may, may.half && services->gpu);
    });
}

void tellPlugins(ir::Graph& graph, ir::Value const& integers, float scale)
{
    for (auto const& n : graph.nodes)
        for (size_t k = 0; isPlugin(*n) && k < n->inputs.size() + n->outputs.size(); ++k)
            if (tensorOf(*n, k) == &integers)
                n->attrsAs<Attrs>().scales[k] = scale;
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

Result<PluginList> finishPlugins(plan::Contents& contents, ServicesPtr const& services)
{
    PluginList finished;
    TW_TRY(forEach(*contents.graph, [&](ir::Graph&, ir::Node& n) -> Result<void> {
        auto& a = n.attrsAs<Attrs>();
        auto const* built = dynamic_cast<BuildPlugin const*>(a.object.get());
        if (!built)
            return internalError("{} is not of a build", ops::plugin::describe(n));
        PluginTensors const tensors = tensorsOf(n);
        TW_ASSIGN(PluginPtr own, built->plugin->clone(services->device()));
        own->configure(tensors);
        TW_TRY(own->initialize());
        TW_ASSIGN(a.workspaceBytes, own->workspaceBytes(tensors));
        TW_ASSIGN(a.state.bytes, own->serialize());
        a.formats.clear();
        for (size_t k = 0; k < tensors.descs.size(); ++k) {
            a.formats.push_back(int64_t(tensors.descs[k].format));
            if (tensors.descs[k].scale != 1)
                contents.scales[tensorOf(n, k)] = double(tensors.descs[k].scale);
        }
        finished.push_back(std::move(own));
        return {};
    }));
    return finished;
}

namespace {

std::string layerOf(ir::Node const& n)
{
    return n.layers.empty() ? n.name : n.layers[0];
}

Result<nvinfer1::IPluginCreator*> creatorOf(ir::Node const& n, bool isSafety)
{
    auto const& s = n.attrsAs<Attrs>().state;
    auto& registry = isSafety ? safetyRegistry() : processRegistry();
    nvinfer1::IPluginCreator* const creator =
        registry.getPluginCreator(s.type.c_str(), s.version.c_str(), s.nameSpace.c_str());
    if (creator)
        return creator;
    return invalidState("getPluginCreator() could not find Plugin {} version {}{} for layer '{}' of the engine: {}",
                        s.type, s.version, s.nameSpace.empty() ? "" : " namespace " + s.nameSpace, layerOf(n),
                        isSafety
                            ? "register its creator with nvinfer1::safe::getSafePluginRegistry() before the engine is "
                              "deserialized"
                            : "load the library that registers it (initLibNvInferPlugins, dlopen, trtexec --plugins) "
                              "before the engine is deserialized");
}

// By the IPluginChecker under the plugin's name, as a creator.
Result<void> askChecker(ir::Node const& n, nvinfer1::IPluginCreator& creator)
{
    using Checker = nvinfer1::consistency::IPluginChecker;
    auto const* const checker = dynamic_cast<Checker const*>(&creator);
    if (!checker)
        return invalidState(
            "{}: the creator in getSafePluginRegistry() is no IPluginChecker, so that nobody can check the plugin",
            ops::plugin::describe(n));
    auto const& a = n.attrsAs<Attrs>();
    PluginTensors const t = tensorsOf(n);
    std::lock_guard const lock(pluginMutex());
    if (!checker->validate(layerOf(n).c_str(), a.state.bytes.data(), a.state.bytes.size(), t.descs.data(),
                           size_t(t.inputs), t.descs.data() + t.inputs, size_t(t.outputs()), a.workspaceBytes))
        return invalidState("{}: IPluginChecker::validate() says no", ops::plugin::describe(n));
    return {};
}

Result<PluginPtr> deserialize(ir::Node const& n, PluginServices const& services, nvinfer1::IPluginCreator* creator)
{
    auto const& s = n.attrsAs<Attrs>().state;
    std::string const layer = layerOf(n);
    std::lock_guard const lock(pluginMutex());
    std::optional<cuda::Current> current;
    if (services.gpu)
        current.emplace(*services.gpu->device);
    nvinfer1::IPluginV2* const plugin = creator->deserializePlugin(layer.c_str(), s.bytes.data(), s.bytes.size());
    if (!plugin)
        return failedInitialization("{}: deserializePlugin() of its creator gave a null pointer for {} bytes",
                                    ops::plugin::describe(n), s.bytes.size());
    plugin->setPluginNamespace(s.nameSpace.c_str());
    return PluginObject::own(plugin, layer, services.device());
}

Result<void> checkRevived(ir::Node const& n, PluginObject const& plugin)
{
    auto const& a = n.attrsAs<Attrs>();
    if (plugin.interface() != a.interface)
        return invalidState(
            "{}: the plan was built with interface {} (IPluginV2, Ext, IOExt, DynamicExt), the creator makes {}",
            ops::plugin::describe(n), int(a.interface), int(plugin.interface()));
    int32_t const outputs = plugin.get().getNbOutputs();
    if (outputs != int32_t(a.outputTypes.size()))
        return invalidState("{}: the plan has {} outputs, the plugin {}", ops::plugin::describe(n),
                            a.outputTypes.size(), outputs);
    return {};
}

} // namespace

Result<void> revivePlugins(plan::Contents const& contents, ServicesPtr const& services, PluginList const& finished)
{
    if (!hasPlugins(*contents.graph))
        return {};
    TW_TRY(ir::verify(*contents.graph)); // before creators see any of it
    bool const isSafety = contents.engineCapability == int32_t(nvinfer1::EngineCapability::kSAFETY);
    size_t next = 0;
    return forEach(*contents.graph, [&](ir::Graph&, ir::Node& n) -> Result<void> {
        for (size_t k = 0; k < n.inputs.size() + n.outputs.size(); ++k) {
            auto const at = contents.scales.find(tensorOf(n, k));
            n.attrsAs<Attrs>().scales.push_back(at == contents.scales.end() ? 1.0F : float(at->second));
        }
        PluginPtr plugin;
        if (next < finished.size()) {
            plugin = finished[next++];
        } else {
            TW_ASSIGN(auto* const creator, creatorOf(n, isSafety));
            if (services->checksPlugins)
                TW_TRY(askChecker(n, *creator));
            TW_ASSIGN(plugin, deserialize(n, *services, creator));
            TW_TRY(checkRevived(n, *plugin));
            TW_TRY(plugin->initialize());
        }
        n.attrsAs<Attrs>().object = std::make_shared<EnginePlugin>(std::move(plugin), services);
        return {};
    });
}

} // namespace tw::api
