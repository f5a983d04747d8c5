// SPDX-License-Identifier: Apache-2.0
// CachedAttention: queries over caches of keys and values that are longer than what they hold (docs/plugins.md). A plugin of our own.
#include <cmath>

#include "api/standard_plugins/standard_plugin.h"
#include "ops/attention/op.h"
#include "tactic/registry.h"

namespace tw::ops::attention {

namespace {

using api::PluginFields, api::PluginLowering;

constexpr char const* kFieldTable = "cache_indirection"; // as BeamStep has it
constexpr char const* kFieldPages = "paged";

// Heads of an operand: [B, heads, S, size], or [B, S, heads * size] with their number in a field.
struct Heads
{
    int64_t count, size;
};
Heads headsOf(PluginLowering& p, size_t input, char const* field)
{
    ir::Value* const x = p.in(input);
    int64_t const given = p.fields.integer(field);
    if (x->rank() == 4) {
        Heads const h{p.known(x, 1), p.known(x, 3)};
        p.check(given == 0 || given == h.count,
                fmt::format("{} is {}, input {} has shape {}", field, given, input, str(x->shape)));
        return h;
    }
    p.check(x->rank() == 3, fmt::format("input {} has shape {}; 3 or 4 dimensions are possible", input, str(x->shape)));
    int64_t const width = p.known(x, 2);
    p.check(given > 0 && width % given == 0,
            fmt::format("{} is {}, input {} has shape {}", field, given, input, str(x->shape)));
    return {given, width / given};
}

std::string check(PluginFields const& f)
{
    for (char const* name : {"num_heads", "kv_num_heads", "window"})
        if (f.integer(name) < 0)
            return fmt::format("{} is {}; it must be 0 or above", name, f.integer(name));
    for (char const* name : {"scale", "softcap"})
        if (!std::isfinite(f.number(name)) || f.number(name) < 0)
            return fmt::format("{} is {}; it must be 0 or a positive number", name, f.number(name));
    if (f.flag(kFieldPages) && f.flag(kFieldTable))
        return fmt::format("{} and {} are both 1; caches are in pages, or whole and of several rows", kFieldPages,
                           kFieldTable);
    return "";
}

void lower(PluginLowering& p)
{
    auto const [heads, size] = headsOf(p, 0, "num_heads");
    Heads const k = headsOf(p, 1, "kv_num_heads"), v = headsOf(p, 2, "kv_num_heads");
    p.check(k.count == v.count && k.size == size && heads % k.count == 0,
            fmt::format("{} heads of queries of size {} do not fit {} of keys of size {} and {} of values", heads, size,
                        k.count, k.size, v.count));
    Attrs a;
    a.heads = heads;
    a.headsPerKey = heads / k.count;
    a.size = a.q.headStride = a.k.headStride = size;
    a.valueSize = a.v.headStride = v.size;
    a.scale = p.fields.number("scale") > 0 ? p.fields.number("scale") : 1 / std::sqrt(double(size));
    a.fill = -INFINITY;
    a.lengths = true;
    a.causal = p.fields.flag("is_causal");
    a.window = p.fields.integer("window");
    a.softcap = p.fields.number("softcap");
    size_t next = 4;
    PluginLowering::Values in{p.in(0), p.in(1), p.in(2)};
    if (p.fields.flag("has_mask"))
        in.push_back(p.in(next++, 4));
    in.push_back(p.in(3, 1));
    a.sinks = p.fields.flag("has_sinks");
    if (a.sinks)
        in.push_back(p.cast(p.in(next++, 1), in[0]->type));
    a.slopes = p.fields.flag("has_slopes");
    if (a.slopes)
        in.push_back(p.cast(p.in(next++, 1), DataType::kFloat));
    a.table = p.fields.flag(kFieldTable);
    if (a.table)
        in.push_back(p.in(next++, 3));
    a.pages = p.fields.flag(kFieldPages);
    if (a.pages)
        in.push_back(p.in(next++, 2));
    p.check(next == p.inputs.size(),
            fmt::format("has_mask, has_sinks, has_slopes, {} and {} want {} inputs, there are {}", kFieldTable,
                        kFieldPages, next, p.inputs.size()));
    for (size_t i = 4 + p.fields.flag("has_mask"); i < next - a.table - a.pages; ++i)
        p.check(isFloating(p.inputs[i]->type),
                fmt::format("input {} must be floating, it is {}", i, nameOf(p.inputs[i]->type)));
    ir::Value* y = p.value(def(), a, std::move(in));
    if (p.in(0)->rank() == 4)
        y = p.transpose(p.reshape(y, {0, 0, heads, v.size}), {0, 2, 1, 3});
    p.outputs = {y};
}

} // namespace

} // namespace tw::ops::attention

namespace tw::api {

void registerPlugins_attention(StandardPlugins& list)
{
    using enum nvinfer1::PluginFieldType;
    list.push_back({.name = "CachedAttention",
                    .version = "1",
                    .fields = {{"num_heads", kINT32},
                               {"kv_num_heads", kINT32},
                               {"scale", kFLOAT32},
                               {"is_causal", kINT32, kMay, kOne, 1},
                               {"window", kINT32},
                               {"softcap", kFLOAT32},
                               {"has_mask", kINT32},
                               {"has_sinks", kINT32},
                               {"has_slopes", kINT32},
                               {ops::attention::kFieldTable, kINT32},
                               {ops::attention::kFieldPages, kINT32}},
                    .types = {"TTTi.?.?.?.?>T"},
                    .lower = ops::attention::lower,
                    .check = ops::attention::check});
}

} // namespace tw::api
