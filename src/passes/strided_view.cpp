// SPDX-License-Identifier: Apache-2.0
#include "passes/strided_view.h"

#include "ops/concatenation/op.h"
#include "ops/gather/op.h"
#include "ops/identity/op.h"
#include "ops/shuffle/op.h"
#include "ops/slice/op.h"
#include "passes/node_kinds.h"
#include "passes/recurrence/recurrence.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

ir::Dim product(ir::Shape const& s, size_t begin, size_t end)
{
    ir::Dim p = 1;
    for (size_t i = begin; i < end; ++i)
        p = p * s[i];
    return p;
}

bool throughShuffle(StridedView& view, ir::Node const& n, bool bySizes)
{
    auto const& a = n.attrsAs<ops::shuffle::Attrs>();
    bool const hasSizes = hasInput(n, 1);
    if (hasSizes && !(bySizes && n.inputs[1]->content))
        return false;
    permute(view, a.firstTranspose);
    if ((a.hasReshape || hasSizes) && !reshape(view, unpermuted(n.outputs[0]->shape, a.secondTranspose)))
        return false;
    permute(view, a.secondTranspose);
    return true;
}

bool throughSlice(StridedView& view, ir::Node const& n)
{
    auto const& a = n.attrsAs<ops::slice::Attrs>();
    for (size_t i = 1; i < n.inputs.size(); ++i)
        if (n.inputs[i])
            return false;
    ir::Shape const sizes = view.sizes();
    for (size_t d = 0; d < sizes.size(); ++d) {
        ir::Dim const size = n.outputs[0]->shape[d], stride = view.stride(d);
        if (a.start[d] == 0 && size == sizes[d] && (a.stride[d] == 1 || size.is(1)))
            continue;
        // One element again and again.
        if (a.start[d] == 0 && sizes[d].is(1) && (a.stride[d] == 0 || a.mode == ops::slice::Mode::kWrap)) {
            view.dimensions[d] = {{size, 0}};
            continue;
        }
        // Inside, one by one.
        if (a.stride[d] != 1 || a.start[d] < 0 || !sizes[d].isConst() || !size.isConst() || !stride.isConst() ||
            stride.is(-1) || a.start[d] > sizes[d].value() - size.value())
            return false;
        view.offset = ir::addSat(view.offset, ir::mulSat(a.start[d], stride.value()));
        view.dimensions[d].clear();
        if (!size.is(1))
            view.dimensions[d] = {{size, stride}};
    }
    return true;
}

bool throughGather(StridedView& view, ir::Node const& n)
{
    auto const& a = n.attrsAs<ops::gather::Attrs>();
    TensorRef const index = constantOf(n.inputs[1]);
    if (!a.isPlain() || !index.data || index.count() != 1 || index.dims.rank != 0)
        return false;
    ir::Dim const all = n.inputs[0]->shape[size_t(a.axis)], stride = view.stride(size_t(a.axis));
    if (!all.isConst() || !stride.isConst() || stride.is(-1))
        return false;
    int64_t const at = index.getInt(0) < 0 ? index.getInt(0) + all.value() : index.getInt(0);
    if (at < 0 || at >= all.value())
        return false;
    view.offset = ir::addSat(view.offset, ir::mulSat(at, stride.value()));
    view.dimensions.erase(view.dimensions.begin() + a.axis);
    return true;
}

} // namespace

ir::Shape StridedView::sizes() const
{
    ir::Shape s;
    for (auto const& runs : dimensions) {
        s.emplace_back(1);
        for (Run const& r : runs)
            s.back() = s.back() * r.size;
    }
    return s;
}

ir::Dim StridedView::stride(size_t d) const
{
    auto const& runs = dimensions[d];
    return runs.empty() ? ir::Dim(0) : runs.size() == 1 ? runs[0].stride : ir::Dim(-1);
}

void permute(StridedView& view, std::vector<int64_t> const& permutation)
{
    view.dimensions = ir::permuted(view.dimensions, permutation);
}

bool isInOrder(StridedView view, ir::Shape const& shape)
{
    if (view.offset != 0 || !reshape(view, shape))
        return false;
    ir::Dim step = 1;
    for (size_t d = shape.size(); d-- > 0; step = step * shape[d])
        if (!shape[d].is(1) && !(view.stride(d) == step))
            return false;
    return true;
}

std::optional<std::vector<ReshapeGroup>> reshapeGroups(ir::Shape const& from, ir::Shape const& to)
{
    auto const realOf = [](ir::Shape const& s) {
        std::vector<size_t> dimensions;
        for (size_t d = 0; d < s.size(); ++d)
            if (!s[d].is(1))
                dimensions.push_back(d);
        return dimensions;
    };
    std::vector<size_t> const x = realOf(from), y = realOf(to);
    std::vector<ReshapeGroup> groups;
    for (size_t i = 0, j = 0; i < x.size() || j < y.size();) {
        size_t iEnd = 0, jEnd = 0;
        ir::Dim ofX = 1;
        for (size_t a = i; a < x.size() && iEnd == 0; ++a) {
            ofX = ofX * from[x[a]];
            ir::Dim ofY = 1;
            for (size_t b = j; b < y.size() && iEnd == 0; ++b)
                if (ofY = ofY * to[y[b]]; ofX == ofY) {
                    iEnd = a + 1;
                    jEnd = b + 1;
                }
        }
        if (iEnd == 0)
            return std::nullopt;
        groups.push_back(
            {{x.begin() + int64_t(i), x.begin() + int64_t(iEnd)}, {y.begin() + int64_t(j), y.begin() + int64_t(jEnd)}});
        i = iEnd;
        j = jEnd;
    }
    return groups;
}

namespace {

// a / b, where it is whole for all values of symbols; -1: it is not.
ir::Dim quotient(ir::Dim const& a, ir::Dim const& b)
{
    if (b.is(0) || (a.isConst() && b.isConst() && a.value() % b.value() != 0))
        return -1;
    ir::Dim const q = floorDiv(a, b);
    return q * b == a ? q : ir::Dim(-1);
}

// Runs of `target` out of those of `runs` that lie inside, which go.
std::optional<std::vector<StridedView::Run>> takeInner(std::vector<StridedView::Run>& runs, ir::Dim target)
{
    std::vector<StridedView::Run> taken;
    while (!target.is(1)) {
        if (runs.empty())
            return std::nullopt;
        StridedView::Run& inner = runs.back();
        if (ir::Dim const rest = quotient(target, inner.size); !rest.is(-1)) {
            target = rest;
            taken.insert(taken.begin(), inner);
            runs.pop_back();
        } else if (ir::Dim const outer = quotient(inner.size, target); !outer.is(-1)) {
            taken.insert(taken.begin(), {target, inner.stride});
            inner = {outer, inner.stride * target};
            target = 1;
        } else {
            return std::nullopt;
        }
    }
    return taken;
}

} // namespace

bool reshape(StridedView& view, ir::Shape const& target)
{
    using Run = StridedView::Run;
    std::vector<Run> all;
    ir::Shape sizes;
    for (auto const& runs : view.dimensions)
        for (Run const& r : runs) {
            all.push_back(r);
            sizes.push_back(r.size);
        }
    auto const groups = reshapeGroups(sizes, target);
    if (!groups)
        return false;
    view.dimensions.assign(target.size(), {});
    for (auto const& [from, to] : *groups) {
        std::vector<Run> joined; // what lies side by side is one
        for (size_t i : from)
            if (!joined.empty() && joined.back().stride == all[i].size * all[i].stride)
                joined.back() = {joined.back().size * all[i].size, all[i].stride};
            else
                joined.push_back(all[i]);
        if (to.size() == 1) {
            view.dimensions[to[0]] = std::move(joined);
            continue;
        }
        if (joined.size() != 1) {
            for (size_t k = to.size(); k-- > 0;) {
                auto runs = takeInner(joined, target[to[k]]);
                if (!runs)
                    return false;
                view.dimensions[to[k]] = std::move(*runs);
            }
            continue;
        }
        ir::Dim stride = joined[0].stride;
        for (size_t k = to.size(); k-- > 0;) {
            view.dimensions[to[k]] = {{target[to[k]], stride}};
            stride = stride * target[to[k]];
        }
    }
    return true;
}

StridedView viewOf(ir::Value* v, int depth, bool bySizes)
{
    StridedView own{v, 0, std::vector<std::vector<StridedView::Run>>(v->shape.size()), {}};
    for (size_t d = 0; d < v->shape.size(); ++d)
        if (!v->shape[d].is(1))
            own.dimensions[d] = {{v->shape[d], product(v->shape, d + 1, v->shape.size())}};
    ir::Node* n = v->producer;
    if (depth == 0 || !n)
        return own;
    bool const isShuffle = n->op == &ops::shuffle::def(), isSlice = n->op == &ops::slice::def();
    if (!isShuffle && !isSlice && n->op != &ops::gather::def())
        return own;
    StridedView view = viewOf(n->inputs[0], depth - 1, bySizes);
    if (!(isShuffle ? throughShuffle(view, *n, bySizes) : isSlice ? throughSlice(view, *n) : throughGather(view, *n)))
        return own;
    view.nodes.push_back(n);
    return view;
}

using ir::Dim;
using ir::Shape;

namespace {

std::optional<Selection> ofGather(ir::Node const& n)
{
    auto const& a = n.attrsAs<ops::gather::Attrs>();
    TensorRef const index = constantOf(n.inputs[1]);
    if (!a.isPlain() || !index.data || index.count() != 1)
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
