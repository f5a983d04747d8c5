// SPDX-License-Identifier: Apache-2.0
#include "passes/fuse_nodes.h"

#include <algorithm>
#include <map>

#include "ops/shuffle/op.h"
#include "passes/node_kinds.h"
#include "passes/precision/precision.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

void sortNodes(ir::Graph const& g, std::vector<ir::Node*>& nodes)
{
    std::vector<ir::Node*> sorted;
    for (auto const& n : g.nodes)
        if (contains(nodes, n.get()))
            sorted.push_back(n.get());
    nodes = std::move(sorted);
}

bool canFuse(ir::Graph const& g, std::vector<ir::Node*> const& nodes)
{
    for (ir::Node const* n : nodes) {
        if (n->outputs.size() != 1 || !n->regions.empty())
            return false;
        for (ir::Node const* other : nodes)
            if (other != nodes.back() && !canJoin(*other, *n))
                return false;
        if (n == nodes.back())
            continue;
        ir::Value const* v = n->outputs[0];
        int inside = 0;
        for (ir::Node const* reader : nodes)
            inside += int(std::ranges::count(reader->inputs, v));
        if (g.useCount(v) != inside)
            return false;
    }
    return true;
}

Result<ir::Value*> addReshape(ir::Graph& g, ir::Value* v, ir::Shape const& shape, int position)
{
    auto const dims = reshapeDims(g, v->shape, shape);
    if (!dims)
        return static_cast<ir::Value*>(nullptr);
    ops::shuffle::Attrs a;
    a.hasReshape = true;
    a.reshape = dims->dims;
    a.zeroIsPlaceholder = dims->placeholder;
    TW_ASSIGN(ir::Node * n, g.addNode(ops::shuffle::def(), a.clone(), {v}, v->name + ".reshaped", {}, position));
    if (v->producer) {
        n->layers = v->producer->layers;
        n->device = v->producer->device;
    }
    if (n->outputs[0]->shape == shape)
        return n->outputs[0];
    g.eraseNode(n);
    return static_cast<ir::Value*>(nullptr);
}

namespace {

Result<std::unique_ptr<ir::Graph>> bodyOf(ir::Graph const& g, std::vector<ir::Node*> const& nodes,
                                          std::vector<FusedInput> const& inputs, ir::Shape const& outputShape)
{
    auto body = std::make_unique<ir::Graph>();
    body->name = nodes[0]->name;
    body->form = g.form;
    body->symbols = g.symbols;
    std::map<ir::Value const*, ir::Value*> to{{nullptr, nullptr}};
    auto bound = mapped<ir::Value*>(
        inputs, [&](FusedInput const& in) { return body->addInput(in.value->name, in.value->type, in.value->shape); });
    for (size_t i = 0; i < inputs.size(); ++i) {
        ir::Value* v = bound[i];
        if (!(inputs[i].value->shape == inputs[i].original->shape)) {
            TW_ASSIGN(v, addReshape(*body, v, inputs[i].original->shape, -1));
            if (!v)
                return std::unique_ptr<ir::Graph>();
        }
        to.try_emplace(inputs[i].original, v);
    }
    for (ir::Node const* n : nodes) {
        std::vector<ir::Value*> in;
        for (ir::Value const* v : n->inputs) {
            if (v && v->isConstant() && !to.count(v))
                to[v] = body->addConstant(v->name, v->type, ir::extentsOf(v->shape), v->constant);
            in.push_back(to.at(v));
        }
        to[n->outputs[0]] = body->cloneNode(*n, std::move(in))->outputs[0];
    }
    ir::Value* y = to.at(nodes.back()->outputs[0]);
    if (!(y->shape == outputShape)) {
        TW_ASSIGN(y, addReshape(*body, y, outputShape, -1));
        if (!y)
            return std::unique_ptr<ir::Graph>();
    }
    body->outputs = {y};
    return body;
}

} // namespace

Result<ir::Node*> fuseNodes(ir::Graph& g, std::vector<ir::Node*> const& nodes, ir::OpDef const& op,
                            std::unique_ptr<ir::AttrsBase> attrs, std::vector<FusedInput> const& inputs)
{
    auto values = mapped<ir::Value*>(inputs, [&](FusedInput const& in) { return in.value; });
    ir::Node* last = nodes.back();
    TW_ASSIGN(ir::Node * fused, g.addNode(op, std::move(attrs), values, nodes[0]->name, {}, g.positionOf(last)));
    ir::Value *from = last->outputs[0], *to = fused->outputs[0];
    auto giveUp = [&]() -> ir::Node* {
        g.eraseNode(fused);
        return nullptr;
    };
    TW_ASSIGN(fused->body, bodyOf(g, nodes, inputs, to->shape));
    if (!fused->body)
        return giveUp();
    TW_TRY(fitBody(*fused));
    if (!(to->shape == from->shape)) {
        TW_ASSIGN(to, addReshape(g, to, from->shape, g.positionOf(last)));
        if (!to)
            return giveUp();
    }
    fused->layers = nodes[0]->layers;
    fused->precision = nodes[0]->precision;
    fused->device = nodes[0]->device;
    for (size_t i = 1; i < nodes.size(); ++i)
        joinOrigins(*fused, *fused, *nodes[i]);
    if (to->producer != fused) {
        to->producer->layers = fused->layers;
        to->producer->device = fused->device;
    }
    to->name = from->name;
    to->host = from->host;
    g.replaceAllUses(from, to);
    for (size_t i = nodes.size(); i-- > 0;)
        if (g.useCount(nodes[i]->outputs[0]) == 0)
            g.eraseNode(nodes[i]);
    return fused;
}

void takeOver(ir::Graph& g, ir::Node& fused, std::vector<ir::Node*> const& nodes)
{
    takePlaceOf(fused, *nodes[0]);
    for (size_t i = 1; i < nodes.size(); ++i)
        joinOrigins(fused, fused, *nodes[i]);
    ir::Value *from = nodes.back()->outputs[0], *to = fused.outputs[0];
    to->name = from->name;
    to->host = from->host;
    g.replaceAllUses(from, to);
}

void replaceNodes(ir::Graph& g, std::vector<ir::Node*> const& nodes, ir::Node& fused)
{
    takeOver(g, fused, nodes);
    for (size_t i = nodes.size(); i-- > 0;)
        g.eraseNode(nodes[i]);
}

std::string namesOf(std::vector<ir::Node*> const& nodes)
{
    std::string names;
    for (ir::Node const* n : nodes)
        names += (names.empty() ? "" : " + ") + n->name;
    return names;
}

std::optional<double> numberOf(ir::Value const* v, recipe::Recipes const* refit)
{
    TensorRef const t = constantOf(v);
    if (!t.data || t.count() == 0 || refitReaches(*v, refit) || !allEqual(v, t.get(0)))
        return std::nullopt;
    return t.get(0);
}

std::optional<ir::Dim> onlyElementOf(ir::Value const* v, recipe::Recipes const* refit)
{
    if (!v || v->type != DataType::kInt32)
        return {};
    if (v->content && v->content->size() == 1)
        return v->content->front();
    TensorRef const t = constantOf(v);
    return t.data && t.count() == 1 && !refitReaches(*v, refit) ? std::optional(ir::Dim(t.getInt(0))) : std::nullopt;
}

bool isSquare(ir::Node const* n, recipe::Recipes const* refit)
{
    using enum ops::elementwise::Operation;
    if (is(n, kProd))
        return n->inputs[0] == n->inputs[1];
    return is(n, kPow) && numberOf(n->inputs[1], refit) == 2.0 && n->inputs[0]->shape == n->outputs[0]->shape;
}

ir::Value* asVector(ir::Graph& g, ir::Value const& v)
{
    return g.addConstant(v.name, v.type, {ir::extentsOf(v.shape).volume()}, v.constant);
}

ir::Value* zeroBias(ir::Graph& g, ir::Value const& kernel, int64_t count)
{
    Tensor const zero(kernel.type, {count});
    return g.addConstant(kernel.name + ".bias", kernel.type, zero.dims(), zero.data());
}

ir::Value* withRank(ir::Graph& g, ir::Value const& v, int rank)
{
    Extents dims;
    for (int i = v.rank(); i < rank; ++i)
        dims.push(1);
    for (ir::Dim const& d : v.shape)
        dims.push(d.value());
    return g.addConstant(v.name, v.type, dims, v.constant);
}

bool isConstantOf(ir::Value const& v, int count)
{
    return v.isConstant() && v.rank() >= count &&
           std::all_of(v.shape.begin(), v.shape.end() - count, [](ir::Dim const& d) { return d.is(1); });
}

} // namespace tw::passes
