// SPDX-License-Identifier: Apache-2.0
// What a loop's body gathers by the number of its trip the loop goes along.
//   before: loop(x, n) { f(gather(x, i)) }        after: loop(x along its axis, n) { f(x_i) }
// Exporters write steps of a sequence that way; fuse_recurrence then knows them as such, and a slice needs no kernel. Any
// form; expects inferred shapes. Stands behind hoist_invariants, which brings what is gathered of in front of the loop.
// Leaves alone: tensors of the body; trips that are not known to stay inside of the tensor from its first or last slice
// on; layers with wishes of the user.
#include "ops/gather/op.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/loops/loop_steps.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

bool isAtMost(ir::Dim const& a, ir::Dim const& b)
{
    ir::Dim const more = b - a;
    return more.isConst() && more.value() >= 0;
}

class Iterator
{
public:
    Iterator(ir::Graph& g, PassContext const& ctx, ir::Node& loop)
        : g_(g), loop_(loop), body_(*loop.regions[1]), refit_(ctx.recipes)
    {}

    Result<bool> run()
    {
        bool changed = false;
        for (size_t i = 0; i < body_.nodes.size(); ++i) {
            ir::Node& n = *body_.nodes[i];
            auto const reverse = directionOf(n);
            if (!reverse)
                continue;
            TW_ASSIGN(bool const replaced, replace(n, *reverse));
            changed = changed || replaced;
            i -= replaced ? 1U : 0U;
        }
        return changed;
    }

private:
    // Whether from last to first; none where the node is no such gather.
    std::optional<bool> directionOf(ir::Node const& n) const
    {
        if (n.op != &ops::gather::def() || hasWish(n))
            return {};
        auto const& a = n.attrsAs<ops::gather::Attrs>();
        TripNumbers const numbers(loop_, refit_);
        ir::Value const* const x = numbers.outside(n.inputs[0]);
        if (!a.isPlain() || !x)
            return {};
        auto const number = numbers.of(n.inputs[1]);
        auto const trips = numbers.most();
        ir::Dim const& size = x->shape[size_t(a.axis)];
        if (!number || !trips || !isAtMost(*trips, size))
            return {};
        if (number->step == 1 && number->start.is(0))
            return false;
        return number->step == -1 && number->start == size - ir::Dim(1) ? std::optional(true) : std::nullopt;
    }
    Result<bool> replace(ir::Node& n, bool reverse)
    {
        int64_t const axis = n.attrsAs<ops::gather::Attrs>().axis;
        ir::Value* const x = n.inputs[0];
        ir::Shape slice = x->shape;
        slice.erase(slice.begin() + axis);
        bool const isSlice = n.outputs[0]->shape == slice;
        if (!isSlice && !reshapeDims(body_, slice, n.outputs[0]->shape))
            return false;
        ir::Value* outer = TripNumbers(loop_, refit_).outside(x);
        if (x->isConstant())
            outer = g_.addConstant(x->name, x->type, ir::extentsOf(x->shape), x->constant);
        TW_ASSIGN(ir::Value * v, addIterator(g_, loop_, outer, axis, reverse, slice));
        if (!isSlice)
            TW_SET(v, addReshape(body_, v, n.outputs[0]->shape, body_.positionOf(&n)));
        body_.replaceAllUses(n.outputs[0], v);
        body_.eraseNode(&n);
        return true;
    }

    ir::Graph& g_;
    ir::Node& loop_;
    ir::Graph& body_;
    recipe::Recipes const* const refit_;
};

} // namespace

Result<bool> iterateGathers(ir::Graph& g, PassContext const& ctx)
{
    return changeEach(g, isLoop, [&](ir::Node& loop) { return Iterator(g, ctx, loop).run(); });
}

} // namespace tw::passes
