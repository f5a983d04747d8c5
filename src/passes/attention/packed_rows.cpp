// SPDX-License-Identifier: Apache-2.0
// Attention over caches and what writes these read their rows out of the projection that holds queries, keys and values side by side:
//   attention(reshape(slice(x)), ..)                        ->  attention(x, ..), with a column to begin at
//   cache_update(cache, transpose(reshape(slice(x))), ..)   ->  cache_update(cache, x, ..), the same
// Two rotations by one table of neighbouring heads of one tensor are one:
//   rotary(reshape(slice(x, 0, a)), c, s), rotary(reshape(slice(x, a, b)), c, s)  ->  parts of rotary(x, c, s) of a + b columns
// Expects Form::kCanonical. Stands behind fuse_attention, whose own nodes read so already. Leaves alone: nodes with wishes of the user,
// updates along other axes than rows behind heads.
#include "ops/attention/op.h"
#include "ops/cache_update/op.h"
#include "ops/rotary/op.h"
#include "ops/shuffle/op.h"
#include "ops/slice/op.h"
#include "passes/attention/attention.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using AttentionAttrs = ops::attention::Attrs;
using UpdateAttrs = ops::cache_update::Attrs;

// A value with the dimensions of a view's source that a node wants, in front of `n`.
Result<ir::Value*> sourceFor(ir::Graph& g, AttentionOperand const& found, ir::Node const& n)
{
    ir::Value* const source = found.view.source;
    return source->shape == found.shape ? source : addReshape(g, source, found.shape, g.positionOf(&n));
}

Result<bool> readQueries(ir::Graph& g, ir::Node& n)
{
    auto& a = n.attrsAs<AttentionAttrs>();
    ir::Value* const q = n.inputs[0];
    if (n.body || hasWish(n) || a.segments || a.rowsFirst || a.q.rowsFirst)
        return false;
    std::optional<AttentionOperand> found;
    if (q->rank() == 4)
        found = operandOf(q, false, q->shape);
    else if (a.q.offset == 0 && a.q.headStride == a.size && q->shape[2].is(a.heads * a.size))
        found = operandOfRows(q, a.heads, a.size);
    if (!found || found->view.nodes.empty() || found->operand.rowsFirst)
        return false;
    TW_ASSIGN(ir::Value * x, sourceFor(g, *found, n));
    if (!x)
        return false;
    n.inputs[0] = x;
    a.q = found->operand;
    return true;
}

Result<bool> readUpdate(ir::Graph& g, ir::Node& n)
{
    auto& a = n.attrsAs<UpdateAttrs>();
    ir::Value* const u = n.inputs[1];
    if (a.isPacked() || hasWish(n) || a.axis != 2 || u->rank() != 4 || !u->shape[1].isConst() ||
        !u->shape[3].isConst() || u->shape[1].value() < 1)
        return false;
    auto const found = operandOf(u, false, u->shape);
    if (!found || found->view.nodes.empty() || found->operand.rowsFirst || found->shape.size() != 3)
        return false;
    TW_ASSIGN(ir::Value * x, sourceFor(g, *found, n));
    if (!x)
        return false;
    n.inputs[1] = x;
    a.offset = found->operand.offset;
    a.headStride = std::max<int64_t>(found->operand.headStride, 1); // of one head any
    return true;
}

// The heads of [B, S, width] that a rotation turns: columns [start, start + heads * size), as [B, S, heads, size].
struct Turned
{
    ir::Node *rotary = nullptr, *reshape = nullptr, *slice = nullptr;
    Selection columns;
};
std::optional<Turned> turnedBy(ir::Graph& g, ir::Node& n)
{
    Turned t{&n};
    ir::Value* const x = n.inputs[0];
    t.reshape = onlyProducer(g, x);
    if (x->rank() != 4 || !isReshape(t.reshape) || t.reshape->inputs[0]->rank() != 3)
        return std::nullopt;
    t.slice = onlyProducer(g, t.reshape->inputs[0]);
    if (!t.slice || t.slice->op != &ops::slice::def() || hasWish(n) || hasWish(*t.reshape) || hasWish(*t.slice))
        return std::nullopt;
    auto const columns = selectionOf(*t.slice);
    ir::Shape const& s = t.slice->outputs[0]->shape;
    if (!columns || !columns->byAttributes || columns->axis != 2 || columns->step != 1 || !x->shape[2].isConst() ||
        !x->shape[3].isConst() || !(x->shape[0] == s[0]) || !(x->shape[1] == s[1]))
        return std::nullopt;
    for (size_t i : {1, 2}) // tables have no dimension of heads
        if (!n.inputs[i]->shape[2].is(1))
            return std::nullopt;
    t.columns = *columns;
    return t;
}

// Heads [begin, begin + count) of a rotation, in the place of `n`, whose result they are.
Result<void> takeHeads(ir::Graph& g, ir::Value* y, int64_t begin, int64_t count, ir::Node const& n, int at)
{
    TW_ASSIGN(ir::Node * part,
              g.addNode(ops::slice::def(), ops::slice::partOf(y->shape, 2, begin, count).clone(), {y}, n.name, {}, at));
    takePlaceOf(*part, n);
    part->outputs[0]->name = n.outputs[0]->name;
    g.replaceAllUses(n.outputs[0], part->outputs[0]);
    return {};
}

// A rotation of `heads` heads from those of `of` on.
Result<ir::Node*> packedRotation(ir::Graph& g, Turned const& of, int64_t heads, int at)
{
    auto a = of.rotary->attrsAs<ops::rotary::Attrs>();
    a.heads = heads;
    a.offset = of.columns.start;
    a.rowSize = of.rotary->inputs[0]->shape[3].value();
    TW_ASSIGN(ir::Node * n,
              g.addNode(ops::rotary::def(), a.clone(), {of.columns.x, of.rotary->inputs[1], of.rotary->inputs[2]},
                        of.rotary->name, {}, at));
    takePlaceOf(*n, *of.rotary);
    return n;
}

Result<bool> joinRotations(ir::Graph& g, ir::Node& first)
{
    auto const a = turnedBy(g, first);
    if (!a)
        return false;
    for (size_t i = size_t(g.positionOf(&first)) + 1; i < g.nodes.size(); ++i) {
        ir::Node* const other = g.nodes[i].get();
        if (other->op != &ops::rotary::def() || other->inputs[1] != first.inputs[1] ||
            other->inputs[2] != first.inputs[2] || !ir::equalAttrs(*other->attrs, *first.attrs))
            continue;
        auto const b = turnedBy(g, *other);
        if (!b || b->columns.x != a->columns.x || b->columns.start != a->columns.start + a->columns.size ||
            !(b->rotary->inputs[0]->shape[3] == a->rotary->inputs[0]->shape[3]))
            continue;
        int at = g.positionOf(&first); // the earlier one
        ir::Value const* const x = first.inputs[0];
        int64_t const heads = x->shape[2].value(), all = heads + other->inputs[0]->shape[2].value();
        TW_ASSIGN(ir::Node * rotary, packedRotation(g, *a, all, at++));
        for (std::string const& layer : other->layers)
            rotary->layers.push_back(layer);
        ir::Value* const y = rotary->outputs[0];
        TW_TRY(takeHeads(g, y, 0, heads, first, at++));
        TW_TRY(takeHeads(g, y, heads, all - heads, *other, at++));
        for (Turned const* t : {&*a, &*b})
            for (ir::Node* n : {t->rotary, t->reshape, t->slice})
                g.eraseNode(n);
        g.eraseUnusedValues();
        return true;
    }
    return false;
}

} // namespace

Result<bool> packedRows(ir::Graph& g, PassContext const& ctx)
{
    TW_ASSIGN(bool const joined, rewriteEach(
                                     g, [](ir::Node const& n) { return n.op == &ops::rotary::def(); },
                                     [&](ir::Node& n) { return joinRotations(g, n); }));
    TW_ASSIGN(bool const queries, changeEach(
                                      g, [](ir::Node const& n) { return n.op == &ops::attention::def(); },
                                      [&](ir::Node& n) { return readQueries(g, n); }));
    TW_ASSIGN(bool const updates, changeEach(
                                      g, [](ir::Node const& n) { return n.op == &ops::cache_update::def(); },
                                      [&](ir::Node& n) { return readUpdate(g, n); }));
    if (queries || updates)
        TW_TRY(removeDead(g, ctx));
    return joined || queries || updates;
}

} // namespace tw::passes
