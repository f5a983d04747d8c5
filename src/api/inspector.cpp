// SPDX-License-Identifier: Apache-2.0
// IEngineInspector: names only, or everything about a layer, as the engine's profiling verbosity allows.
#include "api/inspector.h"

#include <nlohmann/json.hpp>

#include "api/io_formats.h"
#include "api/layer_report.h"
#include "ir/op_def.h"
#include "ops/convolution/op.h"
#include "ops/matrix_multiply/op.h"
#include "runtime/profile_ranges.h"
#include "tactic/registry.h"

using namespace tw;
using namespace tw::api;
using Json = nlohmann::ordered_json;

namespace tw::api {

namespace {

constexpr int kNamesOnly = 0, kNone = 1;

// Names are the client's: bytes that are no UTF-8 are replaced.
std::string text(Json const& j, int indent = -1)
{
    return j.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// Dimensions as far as known: -1 where only a context's shapes tell.
Json dimsOf(InspectorObject const& i, ir::Value const& v, int profile)
{
    Json d = Json::array();
    if (i.context && i.context->getOptimizationProfile() == profile) {
        auto& c = const_cast<ContextObject&>(objectOf(*i.context));
        if (auto inst = c.prepare(); inst.ok()) {
            runtime::ValueState const& s = (*inst)->values[size_t(i.state->core->block().indexOf(&v))];
            if (s.exact) {
                for (int64_t k : s.dims)
                    d.push_back(k);
                return d;
            }
        }
    }
    for (ir::Dim const& k : v.shape)
        d.push_back(runtime::fixedDim(k, i.state->ranges[size_t(profile)]).value());
    return d;
}

Json tensorJson(InspectorObject const& i, ir::Value const& v, int profile)
{
    Json t;
    t["Name"] = v.name;
    t["Location"] = v.host ? "Host" : "Device";
    t["Dimensions"] = dimsOf(i, v, profile);
    bool known = true;
    for (auto const& k : t["Dimensions"])
        known = known && k.get<int64_t>() >= 0;
    if (known)
        t["Format/Datatype"] = formatWords(v.format, typeText(v.type));
    return t;
}

// The op, or the public layer that is one of its kinds.
char const* kindOf(ir::Node const& node)
{
    if (node.op == &ops::convolution::def() && node.attrsAs<ops::convolution::Attrs>().transposed)
        return "deconvolution";
    if (node.op == &ops::matrix_multiply::def() && node.attrsAs<ops::matrix_multiply::Attrs>().connected)
        return "fully_connected";
    return node.op->name;
}

} // namespace

std::string InspectorObject::layer(int index, bool json) const
{
    plan::Contents const& contents = state->core->contents();
    int const profile = index / state->stepCount();
    index %= state->stepCount();
    runtime::LoadedStep const& step = state->core->block().steps[size_t(index)];
    ir::Node const& node = *step.node;
    std::string const name = EngineState::ofProfile(node.name, profile);
    if (contents.profilingVerbosity == kNone)
        return json ? "{}" : "";
    if (contents.profilingVerbosity == kNamesOnly)
        return json ? text(Json(name)) : name;
    Json j;
    j["Name"] = name;
    j["LayerType"] = kindOf(node);
    j["Inputs"] = Json::array();
    for (ir::Value const* v : node.inputs)
        if (v && !v->isConstant())
            j["Inputs"].push_back(tensorJson(*this, *v, profile));
    j["Outputs"] = Json::array();
    for (ir::Value const* v : node.outputs)
        j["Outputs"].push_back(tensorJson(*this, *v, profile));
    j["ParameterType"] = kindOf(node);
    for (auto const& f : ir::fieldsOf(*node.attrs)) {
        using Kind = ir::FieldValue::Kind;
        if (f.kind == Kind::kInteger)
            j[f.name] = f.integers[0];
        else if (f.kind == Kind::kReal)
            j[f.name] = f.reals[0];
        else if (f.kind == Kind::kIntegers)
            j[f.name] = f.integers;
        else if (f.kind == Kind::kReals)
            j[f.name] = f.reals;
        else
            j[f.name] = f.text;
    }
    Json weights = Json::object();
    for (ir::Value const* v : node.inputs)
        if (v && v->isConstant())
            weights[v->name] = {{"Type", typeText(v->type)}, {"Count", ir::extentsOf(v->shape).volume()}};
    if (!weights.empty())
        j["Weights"] = weights;
    j["Origin"] = node.layers;
    j["TacticName"] = step.host ? "host (shape tensor)" : step.tactic ? step.tactic->name() : "";
    if (step.tactic) {
        char hex[32];
        std::snprintf(hex, sizeof hex, "0x%016llx", static_cast<unsigned long long>(step.tactic->id()));
        j["TacticValue"] = hex;
    }
    if (plan::Block const& p = state->core->planned(); index < int(p.steps.size()))
        addReport(j, node, p.steps[size_t(index)].choice);
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

InspectorObject& self(IEngineInspector* i)
{
    return static_cast<InspectorObject&>(*i);
}
InspectorObject const& self(IEngineInspector const* i)
{
    return static_cast<InspectorObject const&>(*i);
}
bool isFormat(LayerInformationFormat f)
{
    return f == LayerInformationFormat::kONELINE || f == LayerInformationFormat::kJSON;
}

} // namespace

bool IEngineInspector::setExecutionContext(IExecutionContext const* context) noexcept
{
    InspectorObject& i = self(this);
    if (context && objectOf(*context).state != i.state) {
        i.reporter.error(invalidArgument("setExecutionContext: the context belongs to another engine"));
        return false;
    }
    i.context = context;
    return true;
}
IExecutionContext const* IEngineInspector::getExecutionContext() const noexcept
{
    return self(this).context;
}
char const* IEngineInspector::getLayerInformation(int32_t layerIndex, LayerInformationFormat format) const noexcept
{
    InspectorObject const& i = self(this);
    return guarded<char const*>(i.reporter, nullptr, [&]() -> Result<char const*> {
        int const count = i.state->layerCount();
        if (layerIndex < 0 || layerIndex >= count)
            return invalidArgument("getLayerInformation: layer " + std::to_string(layerIndex) +
                                   " is out of range (the engine has " + std::to_string(count) + " layers)");
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
    InspectorObject const& i = self(this);
    return guarded<char const*>(i.reporter, nullptr, [&]() -> Result<char const*> {
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
        i.engineText = j.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
        return i.engineText.c_str();
    });
}
void IEngineInspector::setErrorRecorder(IErrorRecorder* recorder) noexcept
{
    self(this).reporter.setRecorder(recorder);
}
IErrorRecorder* IEngineInspector::getErrorRecorder() const noexcept
{
    return self(this).reporter.recorder();
}

} // namespace nvinfer1
