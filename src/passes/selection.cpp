// SPDX-License-Identifier: Apache-2.0
#include "passes/selection.h"

#include <algorithm>

#include "ops/concatenation/op.h"
#include "ops/gather/op.h"
#include "ops/identity/op.h"
#include "ops/shuffle/op.h"
#include "ops/slice/op.h"
#include "passes/node_kinds.h"
#include "passes/recurrence_node.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

using ir::Dim;
using ir::Shape;

namespace {

std::optional<Selection> ofGather(ir::Node const& n)
{
    auto const& a = n.attrsAs<ops::gather::Attrs>();
    TensorRef const index = constantOf(n.inputs[1]);
    if (a.mode != ops::gather::Mode::kDefault || a.elementWiseDims != 0 || !index.data || index.count() != 1)
        return {};
    Dim const& all = n.inputs[0]->shape[size_t(a.axis)];
    int64_t const i = index.getInt(0) + (index.getInt(0) < 0 && all.isConst() ? all.value() : 0);
    if (i < 0 || (all.isConst() && i >= all.value()))
        return {};
    return Selection{n.inputs[0], int(a.axis), i, 1};
}

// Sizes may come from an input: the shape of the result says what they are.
std::optional<Selection> ofSlice(ir::Node const& n)
{
    auto const& a = n.attrsAs<ops::slice::Attrs>();
    Shape const &x = n.inputs[0]->shape, &y = n.outputs[0]->shape;
    if (hasInput(n, 1) || hasInput(n, 3) || a.start.size() != x.size() || a.stride.size() != x.size())
        return {};
    std::optional<Selection> s;
    for (size_t d = 0; d < x.size(); ++d) {
        if (y[d] == x[d] && a.start[d] == 0 && (a.stride[d] == 1 || x[d].is(1)))
            continue;
        int64_t const step = y[d].is(1) ? 1 : a.stride[d];
        if (s || !y[d].isConst() || y[d].value() < 1 || step < 1 || a.start[d] < 0)
            return {};
        bool const isInside = x[d].isConst() ? a.start[d] + (y[d].value() - 1) * step < x[d].value()
                                             : a.mode == ops::slice::Mode::kStrict;
        if (!isInside)
            return {};
        s = Selection{n.inputs[0], int(d), a.start[d], y[d].value(), step, !hasInput(n, 2) && !hasInput(n, 4)};
    }
    return s;
}

} // namespace

std::optional<Selection> selectionOf(ir::Node const& n)
{
    if (n.op == &ops::gather::def())
        return ofGather(n);
    return n.op == &ops::slice::def() ? ofSlice(n) : std::nullopt;
}

ir::Value* rootOf(ir::Value* v)
{
    while (v->producer && ((v->producer->op == &ops::shuffle::def() && ops::shuffle::keepsOrder(*v->producer)) ||
                           (v->producer->op == &ops::identity::def() && v->producer->inputs[0]->type == v->type)))
        v = v->producer->inputs[0];
    return v;
}

std::optional<Selection> stepOf(ir::Value* v)
{
    ir::Value* const root = rootOf(v);
    auto const s = root->producer ? selectionOf(*root->producer) : std::nullopt;
    return s && s->size == 1 && s->x->shape[size_t(s->axis)].isConst() ? s : std::nullopt;
}

namespace {

Shape withoutAxis(Shape shape, size_t axis)
{
    shape.erase(shape.begin() + int64_t(axis));
    return shape;
}

// What all inputs of the concatenation are the steps of, in order.
std::optional<Selection> stepsOf(ir::Node const& n)
{
    if (n.inputs.size() < 2)
        return {};
    std::optional<Selection> first;
    for (size_t i = 0; i < n.inputs.size(); ++i) {
        ir::Value* const v = n.inputs[i];
        auto const s = stepOf(v);
        first = i == 0 ? s : first;
        if (!s || s->x != first->x || s->axis != first->axis || s->start != int64_t(i) || v->type != first->x->type ||
            !(v->shape == n.inputs[0]->shape))
            return {};
    }
    return first->x->shape[size_t(first->axis)].is(int64_t(n.inputs.size())) ? first : std::nullopt;
}

Result<bool> join(ir::Graph& g, ir::Node& n)
{
    auto const steps = stepsOf(n);
    ir::Value* const y = n.outputs[0];
    if (!steps || hasWish(n))
        return false;
    size_t const axis = size_t(n.attrsAs<ops::concatenation::Attrs>().axis), from = size_t(steps->axis);
    Shape const& piece = n.inputs[0]->shape;
    Shape const rest = withoutAxis(steps->x->shape, from);
    auto const to = prefixOf(rest, ir::volume(Shape(piece.begin(), piece.begin() + int64_t(axis))));
    if (!to)
        return false;
    std::vector<int64_t> order;
    for (size_t d = 0; d < rest.size(); ++d)
        order.push_back(int64_t(d < from ? d : d + 1));
    order.insert(order.begin() + int64_t(*to), int64_t(from));
    Shape turned;
    for (int64_t d : order)
        turned.push_back(steps->x->shape[size_t(d)]);
    if (!(turned == y->shape) && !reshapeDims(g, turned, y->shape))
        return false;
    NodeMaker maker(g, n);
    TW_ASSIGN(ir::Value * v, maker.transposed(steps->x, order));
    TW_ASSIGN(v, maker.reshaped(v, y->shape));
    TW_TRY(maker.replace(y, v));
    g.eraseNode(&n);
    return true;
}

} // namespace

Result<bool> joinSelections(ir::Graph& g)
{
    bool changed = false;
    for (size_t i = 0; i < g.nodes.size(); ++i) {
        ir::Node& n = *g.nodes[i];
        if (n.op != &ops::concatenation::def())
            continue;
        TW_ASSIGN(bool const joined, join(g, n));
        if (joined)
            i = size_t(-1); // from the start: nodes have moved
        changed = changed || joined;
    }
    return changed;
}

} // namespace tw::passes
