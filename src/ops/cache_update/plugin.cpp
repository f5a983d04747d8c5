// SPDX-License-Identifier: Apache-2.0
// A cache of keys or values that stays where it is: a plugin of our own, of the name that the ONNX operator has.
#include "api/standard_plugins/standard_plugin.h"
#include "ops/cache_update/op.h"
#include "tactic/registry.h"

namespace tw::api {

namespace {

// "linear" where there is none; a closing zero may be part of the field.
std::string modeOf(PluginFields const& f)
{
    nvinfer1::Weights const w = f.weights("mode");
    std::string const text(static_cast<char const*>(w.values), size_t(w.count));
    return w.count == 0 ? "linear" : text.substr(0, text.find('\0'));
}

std::string check(PluginFields const& f)
{
    std::string const mode = modeOf(f);
    return mode == "linear" || mode == "circular" ? "" : "mode is '" + mode + "'; it must be linear or circular";
}

void lower(PluginLowering& p)
{
    ir::Value* const cache = p.in(0);
    int64_t const rank = cache->rank(), axis = p.fields.integer("axis");
    p.check(axis >= -rank && axis < rank && axis != 0 && axis != -rank,
            fmt::format("axis {} is no dimension behind the first of the {} of '{}'", axis, rank, cache->name));
    ops::cache_update::Attrs a;
    a.axis = axis < 0 ? axis + rank : axis;
    a.circular = modeOf(p.fields) == "circular";
    PluginLowering::Values in{cache, p.in(1)};
    if (p.inputs.size() > 2)
        in.push_back(p.in(2, 1));
    a.pages = p.inputs.size() > 3;
    if (a.pages)
        in.push_back(p.in(3, 2));
    p.outputs = p.node(ops::cache_update::def(), a, std::move(in))->outputs;
}

} // namespace

void registerPlugins_cache_update(StandardPlugins& list)
{
    using enum nvinfer1::PluginFieldType;
    list.push_back({.name = "TensorScatter",
                    .version = "1",
                    .fields = {{"axis", kINT32, kMay, kOne, -2}, {"mode", kCHAR, kMay, kAny}},
                    .types = {"AAi?i?>A"},
                    .lower = lower,
                    .check = check});
}

} // namespace tw::api
