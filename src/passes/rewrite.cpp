// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite.h"

#include <algorithm>
#include <cstring>

#include "ir/op_def.h"
#include "recipe/recipes.h"

namespace tw::passes {

bool replaceValue(ir::Graph& g, ir::Value* from, ir::Value* to)
{
    if (g.isOutput(from)) {
        if (!to->producer || g.isOutput(to))
            return false;
        to->name = from->name;
    }
    g.replaceAllUses(from, to);
    return true;
}

ir::Node* onlyProducer(ir::Graph const& g, ir::Value const* v)
{
    if (!v || !v->producer || g.isOutput(v) || g.useCount(v) != 1)
        return nullptr;
    return v->producer;
}

ir::Value* constantWith(ir::Graph& g, ir::Value const& like, DataType type, Extents const& dims, BlobPtr data)
{
    auto c = std::make_shared<ir::Constant>(*like.constant);
    c->data = std::move(data);
    return g.addConstant(like.name, type, dims, std::move(c));
}

bool isLoop(ir::Node const& n)
{
    return n.op->regions == ir::RegionKind::kLoop;
}

bool canJoin(ir::Node const& first, ir::Node const& second)
{
    auto agree = [](auto const& a, auto const& b) { return !a.byUser || !b.byUser || a.value == b.value; };
    if (!agree(first.precision, second.precision) || !agree(first.device, second.device))
        return false;
    if (first.outputTypes.empty() || !first.outputTypes[0].byUser)
        return true;
    DataType const wish = first.outputTypes[0].value, type = first.outputs[0]->type;
    return wish == type || (isNarrowFloat(wish) && isFullFloat(type));
}

bool hasWish(ir::Node const& n)
{
    return n.precision.byUser || n.device.byUser ||
           std::ranges::any_of(n.outputTypes, [](auto const& t) { return t.byUser; });
}

void joinOrigins(ir::Node& node, ir::Node const& first, ir::Node const& second)
{
    std::vector<std::string> layers = first.layers;
    std::string name = first.name;
    // Nodes of one layer, as those of a standard plugin, are called the same.
    if (first.name != second.name && !first.name.ends_with(" + " + second.name)) {
        layers.insert(layers.end(), second.layers.begin(), second.layers.end());
        name += " + " + second.name;
    }
    auto const precision = first.precision.byUser ? first.precision : second.precision;
    auto const device = first.device.byUser ? first.device : second.device;
    auto outputTypes = second.outputTypes;
    node.layers = std::move(layers);
    node.name = std::move(name);
    node.precision = precision;
    node.device = device;
    node.outputTypes = std::move(outputTypes);
    node.outputTypes.resize(node.outputs.size());
}

void joinAlike(ir::Node& node, std::vector<ir::Node const*> const& nodes)
{
    ir::Node const* first = nullptr;
    for (ir::Node const* n : nodes) {
        if (!n)
            continue;
        if (first) {
            joinOrigins(node, node, *n);
        } else {
            first = n;
            node.name = n->name;
            node.layers = n->layers;
            node.precision = n->precision;
            node.device = n->device;
        }
    }
}

void takePlaceOf(ir::Node& node, ir::Node const& from)
{
    node.layers = from.layers;
    node.precision = from.precision;
    node.outputTypes = from.outputTypes;
    node.device = from.device;
}

std::vector<ir::Node*> readersOf(ir::Graph const& g, ir::Value const* v)
{
    std::vector<ir::Node*> list;
    for (auto const& n : g.nodes)
        if (contains(n->inputs, v))
            list.push_back(n.get());
    return list;
}

ir::Node* nextOf(ir::Graph const& g, ir::Node const* n)
{
    if (n->outputs.size() != 1 || onlyProducer(g, n->outputs[0]) != n)
        return nullptr;
    auto const list = readersOf(g, n->outputs[0]);
    return list.size() == 1 ? list[0] : nullptr;
}

TensorRef constantOf(ir::Value const* v)
{
    if (v)
        recipe::Recipes::Watch::see(*v);
    return elementsOf(v);
}

TensorRef elementsOf(ir::Value const* v)
{
    if (!v || !v->isConstant())
        return {};
    return TensorRef{v->type, ir::extentsOf(v->shape), const_cast<void*>(v->constant->data->data())};
}

bool areSame(ir::Value const* a, ir::Value const* b)
{
    if (a == b || !a || !b || !a->isConstant() || !b->isConstant() || a->type != b->type || !(a->shape == b->shape))
        return a == b;
    TensorRef const s = constantOf(a), t = constantOf(b);
    return s.data == t.data || std::memcmp(s.data, t.data, size_t(s.sizeBytes())) == 0;
}

bool allEqual(ir::Value const* v, double wanted)
{
    if (!v)
        return true;
    TensorRef const t = constantOf(v);
    if (!t.data)
        return false;
    int64_t const count = t.count();
    for (int64_t i = 0; i < count; ++i)
        if (!(t.get(i) == wanted))
            return false;
    return true;
}

bool refitReaches(ir::Value const& v, recipe::Recipes const* refit)
{
    return refit && refit->protects(v);
}

std::optional<ReshapeDims> reshapeDims(ir::Graph const& g, ir::Shape const& from, ir::Shape const& target)
{
    ReshapeDims r;
    if (ir::isStatic(target)) {
        r.placeholder = false;
        for (ir::Dim const& d : target)
            r.dims.push_back(d.value());
        return r;
    }
    bool wildcard = false, maybeEmpty = false;
    ir::Dim const total = volume(from);
    for (size_t i = 0; i < target.size(); ++i) {
        ir::Dim const& d = target[i];
        if (d.isConst()) {
            if (d.value() < 1)
                return std::nullopt; // 0 would copy
            r.dims.push_back(d.value());
        } else if (i < from.size() && d == from[i]) {
            r.dims.push_back(0);
            maybeEmpty = maybeEmpty || d.range(g.symbols).lo < 1;
        } else {
            ir::Dim others = 1;
            for (size_t k = 0; k < target.size(); ++k)
                others = k == i ? others : others * target[k];
            bool const follows = d * others == total || d == ir::floorDiv(total, others);
            if (wildcard || !follows)
                return std::nullopt;
            r.dims.push_back(-1);
            wildcard = true;
        }
    }
    if (wildcard && maybeEmpty)
        return std::nullopt; // nothing infers -1 beside a size of zero
    return r;
}

} // namespace tw::passes
