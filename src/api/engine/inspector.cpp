// SPDX-License-Identifier: Apache-2.0
// IEngineInspector: names only, or everything about a layer, as the engine's profiling verbosity allows.
#include <algorithm>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "api/builder/parts.h"
#include "api/engine/engine.h"
#include "api/engine/layer_report.h"
#include "ir/op_def.h"
#include "ops/append_attention/op.h"
#include "ops/cache_update/op.h"
#include "runtime/profile_shapes.h"
#include "tactic/layer_facts.h"
#include "tactic/registry.h"
#include "tune/limit.h"

using namespace tw;
using namespace tw::api;
using Json = nlohmann::ordered_json;

namespace tw::api {

namespace {

constexpr int kNamesOnly = 0, kNone = 1;
constexpr size_t kMostTextBytes = 4096; // of an attribute

// Names are the client's: bytes that are no UTF-8 are replaced.
std::string text(Json const& j, int indent = -1)
{
    return j.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// What is settled for a context's shapes, without one for those of a static network; null where there is none.
std::shared_ptr<runtime::Instance const> instanceOf(InspectorObject const& i, int profile)
{
    if (!i.context) {
        auto const now = i.state->core->generation();
        return {now, now->example.get()};
    }
    if (i.context->getOptimizationProfile() != profile)
        return nullptr;
    auto& c = const_cast<ContextObject&>(objectOf(*i.context));
    auto inst = c.prepare();
    return inst.ok() ? *inst : nullptr;
}

// Dimensions as far as known: -1 where only a context's shapes tell.
Json dimsOf(InspectorObject const& i, runtime::Instance const* instance, ir::Value const& v, int profile)
{
    Json d = Json::array();
    if (i.context && instance) {
        runtime::ValueState const& s = instance->values[size_t(i.state->core->block().indexOf(&v))];
        if (s.exact) {
            for (int64_t k : s.dims)
                d.push_back(k);
            return d;
        }
    }
    for (ir::Dim const& k : v.shape)
        d.push_back(runtime::fixedDim(k, i.state->ranges[size_t(profile)]).value());
    return d;
}

// In the inspector's words of 8.5: those of linear tensors differ from type to type.
std::string wordsOf(ir::Value const& v)
{
    if (v.format != Format::kLinear)
        return formatWords(v.format, typeText(v.type));
    switch (v.type) {
    case DataType::kFloat:
        return "Row major linear FP32";
    case DataType::kInt8:
        return "Row major Int8 format";
    case DataType::kInt32:
        return "Row major linear Int32";
    case DataType::kBool:
        return "Row major linear BOOL";
    default:
        return fmt::format("Row major linear {} format", numberType(v.type).shown);
    }
}

Json tensorJson(InspectorObject const& i, runtime::Instance const* instance, ir::Value const& v, int profile)
{
    Json t;
    t["Name"] = v.name;
    t["Location"] = v.host ? "Host" : "Device";
    t["Dimensions"] = dimsOf(i, instance, v, profile);
    bool known = true;
    for (auto const& k : t["Dimensions"])
        known = known && k.get<int64_t>() >= 0;
    t["Format/Datatype"] = known ? wordsOf(v) : "N/A due to dynamic shapes";
    return t;
}

// A step that no kernel runs for, and whose output is its input: what readers fold away.
bool isNoOp(runtime::Instance const* instance, runtime::LoadedStep const& step, int index)
{
    if (step.host || !instance || !instance->skipped[size_t(index)])
        return false;
    auto const isRead = [](ir::Value const* v) { return v && !v->isConstant() && !v->host; };
    auto const& inputs = step.node->inputs;
    return step.node->outputs.size() == 1 && std::ranges::count_if(inputs, isRead) == 1;
}

// Inputs that are outputs, too, but for rows that a run writes.
Json cachesOf(ir::Graph const& g)
{
    Json list = Json::array();
    auto const add = [&](ir::Node const& n, ir::InPlace const& p, int64_t axis, size_t index, ir::Value const* pages) {
        ir::Value const &x = *n.inputs[size_t(p.input)], &y = *n.outputs[size_t(p.output)];
        if (!contains(g.inputs, &x) || !g.isOutput(&y))
            return;
        Json one = {{"Input", x.name}, {"Output", y.name}, {"Axis", axis}, {"Capacity", y.shape[size_t(axis)].value()}};
        if (n.inputs.size() > index && n.inputs[index])
            one["WriteIndex"] = n.inputs[index]->name;
        if (pages) {
            ir::Dim const rows = pages->shape[1] * ir::Dim(ops::cache_update::kPageRows);
            one["Capacity"] = rows.isConst() ? rows.value() : -1;
            one["Pages"] = pages->name;
            one["Blocks"] = y.shape[0].isConst() ? y.shape[0].value() : -1;
            one["RowsOfBlock"] = ops::cache_update::kPageRows;
        }
        list.push_back(one);
    };
    for (auto const& n : g.nodes)
        for (ir::InPlace const& p : n->op->inPlace) {
            if (n->op == &ops::append_attention::def()) {
                add(*n, p, ops::append_attention::kRowsAxis, ops::append_attention::kIndex, nullptr);
            } else if (n->op == &ops::cache_update::def()) {
                auto const& a = n->attrsAs<ops::cache_update::Attrs>();
                add(*n, p, a.axis, 2, a.pages ? n->inputs[3] : nullptr);
            }
        }
    return list;
}

Json factJson(ops::Fact const& fact)
{
    return std::visit(
        [](auto const& value) -> Json {
            if constexpr (std::is_same_v<std::decay_t<decltype(value)>, ops::WeightsFact>)
                return {{"Type", value.type}, {"Count", value.count}};
            else
                return value;
        },
        fact);
}

// What its limit is made of, at the dimensions that the record shows.
void addWork(Json& j, runtime::LoadedStep const& step, runtime::Instance const& instance)
{
    ops::Problem const problem = runtime::problemOf(step, instance, instance, 1);
    auto whole = [](double count) { return int64_t(std::min(count, 0x1p62)); };
    j["LimitBytes"] = whole(tune::bytesOf(problem));
    if (double const operations = tune::operationsOf(problem); operations > 0)
        j["LimitOperations"] = whole(operations);
}

// The op's own attributes and constants, by its own names.
void addAttributes(Json& j, ir::Node const& node)
{
    using Kind = ir::FieldValue::Kind;
    j["Op"] = node.op->name;
    Json attributes = Json::object();
    for (auto const& f : ir::fieldsOf(*node.attrs)) {
        Json& value = attributes[f.name];
        if (f.kind == Kind::kInteger)
            value = f.integers[0];
        else if (f.kind == Kind::kReal)
            value = f.reals[0];
        else if (f.kind == Kind::kIntegers)
            value = f.integers;
        else if (f.kind == Kind::kReals)
            value = f.reals;
        else // what a plugin has serialized may be its weights
            value = f.text.size() <= kMostTextBytes ? f.text : fmt::format("{} bytes", f.text.size());
    }
    if (!attributes.empty())
        j["Attributes"] = attributes;
    Json constants = Json::object();
    for (ir::Value const* v : node.inputs)
        if (v && v->isConstant())
            constants[v->name] = {{"Type", typeText(v->type)}, {"Count", ir::extentsOf(v->shape).volume()}};
    if (!constants.empty())
        j["Constants"] = constants;
    j["NetworkLayers"] = node.layers;
}

} // namespace

std::string InspectorObject::layer(int index, bool json) const
{
    plan::Contents const& contents = state->core->contents();
    int const profile = index / state->stepCount();
    index %= state->stepCount();
    runtime::LoadedStep const& step = state->core->block(profile).steps[size_t(index)];
    ir::Node const& node = *step.node;
    std::string const name = EngineState::ofProfile(node.name, profile);
    if (contents.profilingVerbosity == kNone)
        return json ? "{}" : "";
    if (contents.profilingVerbosity == kNamesOnly)
        return json ? text(Json(name)) : name;
    std::string const tactic = step.tactic ? step.tactic->name() : "";
    std::shared_ptr<runtime::Instance const> const kept = instanceOf(*this, profile);
    runtime::Instance const* const instance = kept.get();
    ops::LayerFacts facts = ops::factsOf(node, tactic);
    // A node that came of a standard plugin alone is the plugin that the network had.
    auto const& notes = contents.notes;
    if (auto const it = notes.find(plan::pluginNote(node.layers.size() == 1 ? node.layers[0] : ""));
        it != notes.end()) {
        facts.kind("PluginV2");
        facts.parameters = {{"PluginType", it->second}};
    }
    if (isNoOp(instance, step, index)) {
        facts.kind("NoOp", "");
        facts.parameters.clear();
    }
    // First what 8.5 has, under its names.
    Json j;
    j["Name"] = name;
    j["LayerType"] = facts.layerType;
    j["Inputs"] = Json::array();
    for (ir::Value const* v : node.inputs)
        if (v && !v->isConstant())
            j["Inputs"].push_back(tensorJson(*this, instance, *v, profile));
    j["Outputs"] = Json::array();
    for (ir::Value const* v : node.outputs)
        j["Outputs"].push_back(tensorJson(*this, instance, *v, profile));
    if (!facts.parameterType.empty())
        j["ParameterType"] = facts.parameterType;
    for (auto const& [key, value] : facts.parameters)
        j[key] = factJson(value);
    j["TacticName"] = step.host ? "host (shape tensor)" : tactic;
    if (step.tactic) {
        char hex[32];
        std::snprintf(hex, sizeof hex, "0x%016llx", static_cast<unsigned long long>(step.tactic->id()));
        j["TacticValue"] = hex;
    }
    // Then what only this library says.
    addAttributes(j, node);
    if (node.device.value.kind == ir::DeviceKind::kDla)
        j["Device"] = fmt::format("DLA core {} of {} ({})", node.device.value.core, dla::nameOf(contents.dlaModel),
                                  dla::kNotTheDevice);
    if (plan::Block const& p = state->core->planned().of(size_t(profile)); index < int(p.steps.size())) {
        plan::Choice choice = p.steps[size_t(index)].choice;
        if (choice.tactic == 0) // that of the first profile
            choice.config = state->core->planned().root.steps[size_t(index)].choice.config;
        addReport(j, node, choice);
        if (instance && choice.limitMicroseconds > 0 && !instance->skipped[size_t(index)])
            addWork(j, instance->block->steps[size_t(index)], *instance); // whose graph is another one after a refit
    }
    if (json)
        return text(j);
    std::string line;
    for (auto const& [key, value] : j.items())
        line += (line.empty() ? "" : ", ") + key + ": " + (value.is_string() ? value.get<std::string>() : text(value));
    return line;
}

} // namespace tw::api

namespace nvinfer1 {

namespace {

bool isFormat(LayerInformationFormat f)
{
    return f == LayerInformationFormat::kONELINE || f == LayerInformationFormat::kJSON;
}

} // namespace

bool IEngineInspector::setExecutionContext(IExecutionContext const* context) noexcept
{
    InspectorObject& i = objectOf(*this);
    if (context && objectOf(*context).state != i.state) {
        i.reporter.error(invalidArgument("setExecutionContext: the context belongs to another engine"));
        return false;
    }
    i.context = context;
    return true;
}
TW_GETTER(IEngineInspector, IExecutionContext const*, getExecutionContext, self.context)
char const* IEngineInspector::getLayerInformation(int32_t layerIndex, LayerInformationFormat format) const noexcept
{
    return guarded<char const*>(objectOf(*this), nullptr, [&](InspectorObject const& i) -> Result<char const*> {
        int const count = i.state->layerCount();
        if (layerIndex < 0 || layerIndex >= count)
            return invalidArgument("getLayerInformation: layer {} is out of range (the engine has {} layers)",
                                   layerIndex, count);
        if (!isFormat(format))
            return invalidArgument("getLayerInformation: unknown format");
        i.layerText = i.layer(layerIndex, format == LayerInformationFormat::kJSON);
        if (!i.layerText.empty())
            i.layerText += '\n';
        return i.layerText.c_str();
    });
}
char const* IEngineInspector::getEngineInformation(LayerInformationFormat format) const noexcept
{
    return guarded<char const*>(objectOf(*this), nullptr, [&](InspectorObject const& i) -> Result<char const*> {
        if (!isFormat(format))
            return invalidArgument("getEngineInformation: unknown format");
        plan::Contents const& contents = i.state->core->contents();
        bool const none = contents.profilingVerbosity == static_cast<int>(ProfilingVerbosity::kNONE);
        int const count = i.state->layerCount();
        if (none) { // nothing, as text and as JSON
            i.engineText = format == LayerInformationFormat::kJSON ? "{}\n" : "";
            return i.engineText.c_str();
        }
        if (format == LayerInformationFormat::kONELINE) {
            i.engineText = "Layers:\n";
            for (int k = 0; k < count; ++k)
                i.engineText += i.layer(k, false) + "\n";
            i.engineText += "\nBindings:\n";
            for (auto const& name : i.state->bindingNames)
                i.engineText += name + "\n";
            return i.engineText.c_str();
        }
        Json j;
        j["Layers"] = Json::array();
        for (int k = 0; k < count; ++k)
            j["Layers"].push_back(Json::parse(i.layer(k, true)));
        j["Bindings"] = i.state->bindingNames;
        if (Json const caches = cachesOf(*contents.graph); !caches.empty())
            j["Caches"] = caches;
        addSums(j, *contents.graph, i.state->core->planned().root);
        i.engineText = j.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
        return i.engineText.c_str();
    });
}
TW_RECORDER_METHODS(IEngineInspector)

} // namespace nvinfer1
