// SPDX-License-Identifier: Apache-2.0
// Brings an activation back to the convolution or matrix product whose result was moved in between:
//   before: f(shuffle(conv(x)))        after: shuffle(f(conv(x)))
// so that fuse_activation takes it. Exporters write the first for depthwise convolutions between the linear layers of a
// transformer's block, whose pixels become rows in front of the activation (PVT, SegFormer). f is any that match_activation
// knows, of one node or of several, whose numbers get the rank of the convolution's result. Expects Form::kCanonical. Stands
// in front of fuse_activation. Leaves alone: results that others read, wishes of the user, shapes from elsewhere.
#include "ops/convolution/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/shuffle/op.h"
#include "passes/fuse_nodes.h"
#include "passes/fusion/match_activation.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

// One number for all elements, of another rank.
ir::Value* ofRank(ir::Graph& g, ir::Value const& number, int rank)
{
    Extents dims;
    for (int i = 0; i < rank; ++i)
        dims.push(1);
    return g.addConstant(number.name, number.type, dims, number.constant);
}

bool isNumber(ir::Value const& v)
{
    return v.isConstant() && std::ranges::all_of(v.shape, [](ir::Dim const& d) { return d.is(1); });
}

// Whether the nodes read nothing but each other, `x` and numbers, so that another shape of x changes nothing else.
bool areOfAnyShape(std::vector<ir::Node*> const& nodes, ir::Value const* x)
{
    auto const isInside = [&](ir::Value const* v) {
        return v == x || isNumber(*v) || (v->producer && contains(nodes, v->producer));
    };
    return std::ranges::all_of(nodes, [&](ir::Node const* n) {
        return !hasWish(*n) && n->outputs.size() == 1 && n->outputs[0]->type == x->type &&
               std::ranges::all_of(n->inputs, [&](ir::Value const* v) { return v && isInside(v); });
    });
}

Result<bool> moveBack(ir::Graph& g, ir::Node& head, PassContext const& ctx)
{
    ir::Node* const moving = nextOf(g, &head);
    if (!isShuffle(moving) || hasWish(*moving) || g.isOutput(moving->outputs[0]))
        return false;
    ir::Value *const y = head.outputs[0], *const moved = moving->outputs[0];
    auto const found = matchActivation(g, moved, ctx.recipes);
    if (!found || moved->type != y->type || !areOfAnyShape(found->nodes, moved))
        return false;
    for (ir::Node* n : found->nodes) {
        for (ir::Value*& v : n->inputs)
            v = v == moved ? y : isNumber(*v) ? ofRank(g, *v, y->rank()) : v;
        TW_TRY(g.inferNode(*n));
    }
    ir::Node* const last = found->nodes.back();
    ir::Value* const result = last->outputs[0];
    TW_ASSIGN(ir::Node * after,
              g.addNode(*moving->op, moving->attrs->clone(), {y}, moving->name, {}, g.positionOf(last) + 1));
    takePlaceOf(*after, *moving);
    if (!replaceValue(g, result, after->outputs[0]))
        return internalError("activation_before_movement: '{}' is an output already", moving->name);
    after->inputs[0] = result;
    TW_TRY(g.inferNode(*after));
    g.eraseNode(moving);
    return true;
}

} // namespace

Result<bool> activationBeforeMovement(ir::Graph& g, PassContext const& ctx)
{
    auto const isHead = [](ir::Node const& n) {
        return ops::convolution::isBare(n) || ops::matrix_multiply::isBareProduct(n);
    };
    return rewriteEach(g, isHead, [&](ir::Node& head) { return moveBack(g, head, ctx); });
}

} // namespace tw::passes
