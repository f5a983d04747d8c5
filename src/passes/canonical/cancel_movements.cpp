// SPDX-License-Identifier: Apache-2.0
// Takes movements away that undo each other, whatever reshapes stand between them:
//   transpose(reshape(.. transpose(x)))  ->  x, or x in another shape, where all elements are in x's order again
// Expects Form::kCanonical. Stands after fuse_attention, whose result often is turned back at once. Leaves alone: wishes of the
// user, shapes that attributes of a reshape cannot say.
#include "ops/shuffle/op.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/rewrite.h"
#include "passes/strided_view.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

constexpr int kMostNodes = 6;

// What the shuffle's result is in another shape; null: elements move.
ir::Value* unmoved(ir::Node const& n)
{
    ir::Value* found = nullptr;
    for (int depth = 2; depth <= kMostNodes; ++depth) {
        StridedView const view = viewOf(n.outputs[0], depth);
        if (int(view.nodes.size()) < depth)
            return found;
        if (view.source && !view.source->isConstant() && view.source->type == n.outputs[0]->type &&
            isInOrder(view, view.source->shape) && volume(view.source->shape) == volume(n.outputs[0]->shape))
            found = view.source;
    }
    return found;
}

Result<bool> cancel(ir::Graph& g, ir::Node& n)
{
    ir::Value* const x = unmoved(n);
    if (!x)
        return false;
    ir::Value* const y = n.outputs[0];
    if (x->shape == y->shape && !g.isOutput(y)) {
        g.replaceAllUses(y, x);
        g.eraseNode(&n);
        return true;
    }
    TW_ASSIGN(ir::Value * to, addReshape(g, x, y->shape, g.positionOf(&n)));
    if (!to)
        return false;
    to->producer->name = n.name;
    takePlaceOf(*to->producer, n);
    to->name = y->name;
    g.replaceAllUses(y, to);
    g.eraseNode(&n);
    return true;
}

} // namespace

Result<bool> cancelMovements(ir::Graph& g, PassContext const& ctx)
{
    auto const isMovement = [](ir::Node const& n) {
        return n.op == &ops::shuffle::def() && n.outputs.size() == 1 && !isReshape(&n) && !hasWish(n);
    };
    TW_ASSIGN(bool const changed, rewriteEach(
                                      g, isMovement, [&](ir::Node& n) { return cancel(g, n); }, Order::kFromTheEnd));
    if (changed)
        TW_TRY(removeDead(g, ctx));
    return changed;
}

} // namespace tw::passes
