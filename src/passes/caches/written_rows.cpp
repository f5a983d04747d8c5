// SPDX-License-Identifier: Apache-2.0
#include "passes/caches/written_rows.h"

#include <algorithm>
#include <numeric>

#include "ir/permutation.h"
#include "ops/cache_update/op.h"
#include "ops/elementwise/op.h"
#include "ops/fill/op.h"
#include "ops/scatter/op.h"
#include "ops/shuffle/op.h"
#include "ops/slice/op.h"
#include "passes/fuse_nodes.h"
#include "passes/node_kinds.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

// The permutation of a shuffle that does nothing else; empty: it is none.
std::vector<int64_t> orderOf(ir::Node const* n)
{
    if (!isShuffle(n))
        return {};
    auto const& a = n->attrsAs<ops::shuffle::Attrs>();
    return a.hasReshape || !a.secondTranspose.empty() ? std::vector<int64_t>() : a.firstTranspose;
}

std::vector<int64_t> inverse(std::vector<int64_t> const& order)
{
    std::vector<int64_t> back(order.size());
    for (size_t d = 0; d < order.size(); ++d)
        back[size_t(order[d])] = int64_t(d);
    return back;
}

// Scatters of tuples: rows in front, all that is behind them.
std::optional<WrittenRows> ofTuples(ir::Graph const& g, ir::Node& n)
{
    ir::Value const& j = *n.inputs[1];
    WrittenRows rows{&n, {}, nullptr, nullptr, n.inputs[2], n.inputs[1], 0, orderOf(n.inputs[0]->producer)};
    if (rows.order.empty() || j.rank() != 2 || !j.shape[1].is(1) || g.isOutput(n.outputs[0]))
        return std::nullopt;
    rows.cache = n.inputs[0]->producer->inputs[0];
    rows.axis = int(rows.order[0]);
    rows.back = readersOf(g, n.outputs[0]);
    auto const back = inverse(rows.order);
    if (rows.axis < 1 || rows.back.empty() ||
        !std::ranges::all_of(rows.back, [&](ir::Node const* m) { return orderOf(m) == back; }))
        return std::nullopt;
    if (orderOf(rows.updateMoved->producer) == rows.order)
        rows.update = rows.updateMoved->producer->inputs[0];
    return rows;
}

// Scatters of elements, each row at one place.
std::optional<WrittenRows> ofElements(ir::Node& n)
{
    auto const axis = n.attrsAs<ops::scatter::Attrs>().axis;
    ir::Value const &x = *n.inputs[0], &u = *n.inputs[2];
    for (size_t d = 0; d < x.shape.size(); ++d)
        if (int64_t(d) != axis && !(x.shape[d] == u.shape[d]))
            return std::nullopt;
    ir::Value* const places = axis >= 1 ? repeatedBut(n.inputs[1], size_t(axis)) : nullptr;
    if (!places)
        return std::nullopt;
    return WrittenRows{&n, {}, n.inputs[0], n.inputs[2], nullptr, places, int(axis), {}};
}

bool isCountingUp(ir::Node const* n)
{
    return n && n->op == &ops::fill::def() &&
           n->attrsAs<ops::fill::Attrs>().operation == ops::fill::Operation::kLinspace &&
           n->outputs[0]->type == DataType::kInt32 && n->outputs[0]->rank() == 1 &&
           (hasInput(*n, 2) ? allEqual(n->inputs[2], 1) && n->inputs[2]->isConstant()
                            : n->attrsAs<ops::fill::Attrs>().beta == 1);
}

bool beginsWithZero(ir::Node const& range)
{
    return hasInput(range, 1) ? range.inputs[1]->isConstant() && allEqual(range.inputs[1], 0)
                              : range.attrsAs<ops::fill::Attrs>().alpha == 0;
}

} // namespace

std::optional<WrittenRows> writtenRows(ir::Graph const& g, ir::Node& n)
{
    if (n.op != &ops::scatter::def() || hasWish(n) || n.inputs[0]->rank() < 2)
        return std::nullopt;
    auto const& a = n.attrsAs<ops::scatter::Attrs>();
    if (a.reduction != ops::scatter::Reduction::kNone)
        return std::nullopt;
    return a.mode == ops::scatter::Mode::kNd ? ofTuples(g, n) : ofElements(n);
}

ir::Value* beginOf(ir::Value* places)
{
    ir::Value* const v = beforeReshapes(places);
    if (volume(v->shape).is(1))
        return v;
    ir::Node const* const n = v->producer;
    if (isCountingUp(n) && hasInput(*n, 1))
        return n->inputs[1];
    if (!is(n, ops::elementwise::Operation::kSum) || n->outputs[0]->rank() != 1)
        return nullptr;
    for (int i : {0, 1}) {
        ir::Value* const begin = n->inputs[size_t(1 - i)];
        ir::Node const* const range = n->inputs[size_t(i)]->producer;
        if (isCountingUp(range) && beginsWithZero(*range) && volume(begin->shape).is(1))
            return begin;
    }
    return nullptr;
}

Result<ir::Value*> asTheCache(ir::Graph& g, WrittenRows const& rows)
{
    if (rows.update)
        return rows.update;
    ir::Node& n = *rows.scatter;
    ops::shuffle::Attrs a;
    a.firstTranspose = inverse(rows.order);
    TW_ASSIGN(ir::Node * moved,
              g.addNode(ops::shuffle::def(), a.clone(), {rows.updateMoved}, n.name + ".rows", {}, g.positionOf(&n)));
    takePlaceOf(*moved, n);
    return moved->outputs[0];
}

Result<bool> takePlace(ir::Graph& g, WrittenRows const& rows, ir::Node& made)
{
    ir::Node& n = *rows.scatter;
    takePlaceOf(made, n);
    ir::Value* const y = made.outputs[0];
    auto const old = rows.back.empty() ? std::vector<ir::Value*>{n.outputs[0]}
                                       : mapped<ir::Value*>(rows.back, [](ir::Node const* m) { return m->outputs[0]; });
    bool isNamed = false;
    for (ir::Value* v : old)
        if (g.isOutput(v)) {
            if (std::exchange(isNamed, true)) { // two outputs of one cache
                g.eraseNode(&made);
                return false;
            }
            y->name = v->name;
        }
    for (ir::Value* v : old)
        g.replaceAllUses(v, y);
    for (ir::Node* m : rows.back)
        g.eraseNode(m);
    g.eraseNode(&n);
    return true;
}

Result<bool> toUpdate(ir::Graph& g, WrittenRows const& rows, ir::Value* index, bool circular)
{
    TW_ASSIGN(ir::Value * update, asTheCache(g, rows));
    ops::cache_update::Attrs a;
    a.axis = rows.axis;
    a.circular = circular;
    auto const made = g.addNode(ops::cache_update::def(), a.clone(), {rows.cache, update, index}, rows.scatter->name,
                                {}, g.positionOf(rows.scatter));
    return made.ok() ? takePlace(g, rows, **made) : false;
}

Result<bool> toElements(ir::Graph& g, WrittenRows const& rows)
{
    ir::Node& n = *rows.scatter;
    int const position = g.positionOf(&n);
    ir::Shape along(size_t(rows.cache->rank()), 1);
    along[size_t(rows.axis)] = rows.places->shape[0];
    TW_ASSIGN(ir::Value * index, addReshape(g, rows.places, along, position));
    if (!index)
        return false;
    TW_ASSIGN(ir::Value * update, asTheCache(g, rows));
    auto add = [&](ir::OpDef const& op, ir::AttrsBase const& a, std::vector<ir::Value*> inputs) -> Result<ir::Node*> {
        return g.addNode(op, a.clone(), std::move(inputs), n.name, {}, g.positionOf(&n));
    };
    TW_ASSIGN(ir::Node * dims, add(ops::shape::def(), ir::NoAttrs(), {update}));
    ops::slice::Attrs all;
    all.start.assign(along.size(), 0);
    all.stride.assign(along.size(), 0);
    all.stride[size_t(rows.axis)] = 1;
    TW_ASSIGN(ir::Node * repeated, add(ops::slice::def(), all, {index, nullptr, dims->outputs[0]}));
    takePlaceOf(*dims, n);
    takePlaceOf(*repeated, n);
    ops::scatter::Attrs a;
    a.mode = ops::scatter::Mode::kElement;
    a.axis = rows.axis;
    TW_ASSIGN(ir::Node * made, add(ops::scatter::def(), a, {rows.cache, repeated->outputs[0], update}));
    return takePlace(g, rows, *made);
}

} // namespace tw::passes
