// SPDX-License-Identifier: Apache-2.0
#include "passes/attention/sinks.h"

#include <algorithm>

#include "ops/attention/op.h"
#include "ops/concatenation/op.h"
#include "ops/dequantize/op.h"
#include "ops/elementwise/op.h"
#include "ops/reduce/op.h"
#include "ops/slice/op.h"
#include "ops/softmax/op.h"
#include "passes/fuse_nodes.h"
#include "passes/node_kinds.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

// x without its last column.
bool isAllButTheLast(ir::Node const& n)
{
    if (n.op != &ops::slice::def() || hasInput(n, 1) || hasInput(n, 3) || hasWish(n))
        return false;
    auto const& a = n.attrsAs<ops::slice::Attrs>();
    ir::Shape const &x = n.inputs[0]->shape, &y = n.outputs[0]->shape;
    for (size_t d = 0; d < x.size(); ++d)
        if (a.start[d] != 0 || a.stride[d] != 1 || !(x[d] == (d + 1 == x.size() ? y[d] + ir::Dim(1) : y[d])))
            return false;
    return true;
}

// x - max(x) along the last dimension is x to a softmax.
ir::Value* withoutLargest(ir::Value* v)
{
    ir::Node const* const n = v->producer;
    if (!is(n, ops::elementwise::Operation::kSub))
        return v;
    ir::Node const* const most = n->inputs[1]->producer;
    if (!most || most->op != &ops::reduce::def() || most->inputs[0] != n->inputs[0])
        return v;
    auto const& a = most->attrsAs<ops::reduce::Attrs>();
    bool const isOfRows = a.kind == ops::reduce::Kind::kMax && a.isBare() && most->outputs[0]->rank() == v->rank() &&
                          most->outputs[0]->shape.back().is(1) && a.has(v->rank() - 1);
    return isOfRows ? n->inputs[0] : v;
}

// What is repeated for images and rows: one element for each head; null: something else.
ir::Value* ofHeads(ir::Value* v)
{
    ir::Node const* const n = v->producer;
    ir::Dim const heads = v->shape[1];
    if (!heads.isConst())
        return nullptr;
    if (n && n->op == &ops::slice::def() && !hasInput(*n, 1) && !hasInput(*n, 3)) {
        auto const& a = n->attrsAs<ops::slice::Attrs>();
        ir::Shape const& x = n->inputs[0]->shape;
        bool const isExpansion = std::ranges::all_of(a.start, [](int64_t s) { return s == 0; }) && x.size() == 4 &&
                                 x[1] == heads && x[0].is(1) && x[2].is(1) && x[3].is(1);
        if (isExpansion)
            return n->inputs[0];
    }
    return volume(v->shape) == heads ? v : nullptr;
}

// Whether scores are rounded on their way from the product of q and k.
bool isRounded(ir::Value const* v)
{
    constexpr int kMostNodes = 8;
    for (int i = 0; i < kMostNodes && v->producer && !v->producer->inputs.empty(); ++i) {
        if (v->producer->op == &ops::dequantize::def())
            return true;
        v = v->producer->inputs[0];
    }
    return false;
}

} // namespace

std::optional<SinkScores> sinkScoresOf(ir::Graph const& g, ir::Node const& product)
{
    ir::Value* const v = beforeCasts(product.inputs[0]);
    SinkScores found;
    found.part = v->producer;
    if (v->rank() != 4 || !found.part || !isAllButTheLast(*found.part) || g.useCount(v) != 1)
        return std::nullopt;
    found.softmax = beforeCasts(found.part->inputs[0])->producer;
    if (!found.softmax || found.softmax->op != &ops::softmax::def() || hasWish(*found.softmax) ||
        found.softmax->attrsAs<ops::softmax::Attrs>().axis != 3)
        return std::nullopt;
    ir::Node* const joined = found.joined = withoutLargest(beforeCasts(found.softmax->inputs[0]))->producer;
    if (!joined || joined->op != &ops::concatenation::def() || joined->inputs.size() != 2 ||
        joined->attrsAs<ops::concatenation::Attrs>().axis != 3 || !joined->inputs[1]->shape[3].is(1))
        return std::nullopt;
    found.scores = joined->inputs[0];
    found.sinks = ofHeads(joined->inputs[1]);
    bool const isOfProduct = found.sinks && found.sinks->type == product.inputs[0]->type &&
                             volume(found.sinks->shape) == product.outputs[0]->shape[1] && !isRounded(found.scores);
    return isOfProduct ? std::optional(found) : std::nullopt;
}

namespace {

// softmax(s) in the place of p, where nothing reads s otherwise until p is there again.
Result<ir::Node*> hideSinks(ir::Graph& g, SinkScores const& found)
{
    TW_ASSIGN(ir::Node * n, g.addNode(ops::softmax::def(), found.softmax->attrs->clone(), {found.scores},
                                      found.softmax->name, {}, g.positionOf(found.part)));
    takePlaceOf(*n, *found.softmax);
    if (n->outputs[0]->type != found.part->outputs[0]->type ||
        !(n->outputs[0]->shape == found.part->outputs[0]->shape)) {
        g.eraseNode(n);
        return static_cast<ir::Node*>(nullptr);
    }
    g.replaceAllUses(found.part->outputs[0], n->outputs[0]);
    found.joined->inputs[0] = nullptr;
    return n;
}

void showSinks(ir::Graph& g, SinkScores const& found, ir::Node* softmax)
{
    found.joined->inputs[0] = found.scores;
    g.replaceAllUses(softmax->outputs[0], found.part->outputs[0]);
    g.eraseNode(softmax);
}

// The attention, which has been made of softmax(s) v, with sinks.
Result<void> addSinks(ir::Graph& g, ir::Node& n, SinkScores const& found)
{
    auto& a = n.attrsAs<ops::attention::Attrs>();
    ir::Value* sinks = found.sinks;
    if (!(sinks->shape == ir::Shape{a.heads}))
        TW_SET(sinks, addReshape(g, sinks, {a.heads}, g.positionOf(&n)));
    a.sinks = true;
    n.body = nullptr;
    for (ir::Node const* gone : {found.joined, found.part})
        joinOrigins(n, n, *gone);
    n.inputs.push_back(sinks);
    return g.inferNode(n);
}

} // namespace

Result<ir::Node*> fuseWithSinks(ir::Graph& g, ir::Node& product, SinkScores const& found,
                                std::function<Result<ir::Node*>(ir::Node&)> const& fuse)
{
    TW_ASSIGN(ir::Node * softmax, hideSinks(g, found));
    if (!softmax)
        return softmax;
    TW_ASSIGN(ir::Node * attention, fuse(product));
    if (attention)
        TW_TRY(addSinks(g, *attention, found));
    else
        showSinks(g, found, softmax);
    return attention;
}

} // namespace tw::passes
