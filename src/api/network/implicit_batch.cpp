// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "api/network/network.h"
#include "ops/concatenation/op.h"
#include "ops/shape/op.h"
#include "ops/slice/op.h"
#include "tactic/registry.h"

namespace tw::api {

bool hasBatch(ir::Value const* v)
{
    return v->rank() > 0 && v->shape[0] == ir::Dim::symbol(kBatch);
}

Result<ir::Value*> overBatch(ir::Graph& g, ir::Value* v, std::string const& name, std::string const& layer)
{
    auto const source = std::ranges::find_if(g.inputs, hasBatch);
    if (source == g.inputs.end())
        return v;
    auto add = [&](ir::OpDef const& op, auto attrs, std::vector<ir::Value*> inputs,
                   char const* part) -> Result<ir::Value*> {
        TW_ASSIGN(ir::Node * node, g.addNode(op, std::make_unique<decltype(attrs)>(std::move(attrs)), std::move(inputs),
                                             name + " [" + part + "]"));
        node->layers = {layer};
        return node->outputs[0];
    };
    TW_ASSIGN(ir::Value * size, add(ops::shape::def(), ir::NoAttrs(), {*source}, "batch shape"));
    ops::slice::Attrs first;
    first.start = {0};
    first.size = first.stride = {1};
    TW_ASSIGN(size, add(ops::slice::def(), std::move(first), {size}, "batch size"));
    if (v->rank() > 1) {
        TW_ASSIGN(ir::Value * whole, add(ops::shape::def(), ir::NoAttrs(), {v}, "item shape"));
        ops::slice::Attrs rest;
        rest.start = rest.stride = {1};
        rest.size = {v->rank() - 1};
        TW_ASSIGN(whole, add(ops::slice::def(), std::move(rest), {whole}, "item size"));
        TW_ASSIGN(size, add(ops::concatenation::def(), ops::concatenation::Attrs(), {size, whole}, "batched shape"));
    }
    ops::slice::Attrs repeat;
    repeat.start.assign(size_t(v->rank()), 0);
    repeat.stride.assign(size_t(v->rank()), 1);
    repeat.stride[0] = 0;
    return add(ops::slice::def(), std::move(repeat), {v, nullptr, size}, "batched");
}

} // namespace tw::api
