// SPDX-License-Identifier: Apache-2.0
#include "tactic/regions.h"

#include <algorithm>

namespace tw::ops {

using ir::Dim;

namespace {

ir::Shape shapeOf(ir::InferContext const& ctx, RegionInput const& in)
{
    ir::Shape shape = ctx.shape(in.outer);
    if (in.axis >= 0)
        shape.erase(shape.begin() + in.axis);
    return shape;
}

} // namespace

std::vector<RegionInput> regionInputsFrom(ir::InferContext const& ctx, int first)
{
    std::vector<RegionInput> list;
    for (int i = first; i < ctx.inputCount(); ++i)
        list.push_back({i});
    return list;
}

Result<void> checkRegionInputs(ir::InferContext& ctx, size_t r, std::vector<RegionInput> const& inputs,
                               char const* name)
{
    if (r >= ctx.node().regions.size() || !ctx.node().regions[r])
        return ctx.error(std::string("the region '") + name + "' is missing");
    ir::Graph const& g = *ctx.node().regions[r];
    if (g.inputs.size() != inputs.size())
        return ctx.error("the region '{}' takes {} inputs, the node gives it {}", name, g.inputs.size(), inputs.size());
    for (size_t i = 0; i < g.inputs.size(); ++i) {
        int const outer = inputs[i].outer;
        ir::Value const& v = *g.inputs[i];
        ir::Shape const given = ctx.has(outer) ? shapeOf(ctx, inputs[i]) : ir::Shape{};
        bool equal = ctx.has(outer) && v.type == ctx.type(outer) && v.shape.size() == given.size();
        for (size_t d = 0; equal && d < v.shape.size(); ++d)
            equal = !v.shape[d].isConst() || !given[d].isConst() || v.shape[d] == given[d];
        if (!equal)
            return ctx.error((inputs[i].axis < 0 ? "" : "a slice of ") + ctx.describe(outer) + " does not fit input '" +
                             v.name + "' (" + nameOf(v.type) + str(v.shape) + ") of the region '" + name + "'");
    }
    return {};
}

OuterDim outerDim(ir::InferContext const& ctx, size_t r, std::vector<RegionInput> const& inputs, Dim const& inner)
{
    ir::Graph const& g = *ctx.node().regions[r];
    OuterDim out{true, inner, ctx.range(inner)};
    if (inner.isConst())
        return out;
    // What each symbol that stands alone in an input's shape, or among its elements, is outside.
    ir::Bindings values;
    std::vector<std::string> same;
    auto bind = [&](Dim const& in, Dim const& o) {
        std::vector<std::string> names;
        in.collectSymbols(names);
        if (in == o)
            same.insert(same.end(), names.begin(), names.end());
        else if (o.isConst() && names.size() == 1 && in == Dim::symbol(names[0]))
            values[names[0]] = o.value();
    };
    for (size_t i = 0; i < g.inputs.size(); ++i) {
        ir::Shape const &shape = g.inputs[i]->shape, given = shapeOf(ctx, inputs[i]);
        for (size_t d = 0; d < shape.size(); ++d) {
            Dim const& o = given[d];
            if (shape[d] == inner)
                return {true, o, ctx.range(o)};
            bind(shape[d], o);
        }
        auto const& content = g.inputs[i]->content;
        auto const* around = inputs[i].axis < 0 ? ctx.content(inputs[i].outer) : nullptr;
        for (size_t e = 0; content && around && e < content->size() && e < around->size(); ++e) {
            if ((*content)[e] == inner)
                return {true, (*around)[e], ctx.range((*around)[e])};
            bind((*content)[e], (*around)[e]);
        }
    }
    if (auto const v = inner.eval(values); v.ok())
        return {true, *v, {*v, *v}};
    std::vector<std::string> names;
    inner.collectSymbols(names);
    if (std::all_of(names.begin(), names.end(),
                    [&](std::string const& n) { return std::find(same.begin(), same.end(), n) != same.end(); }))
        return out;
    return {false, inner, inner.range(g.symbols)};
}

} // namespace tw::ops
