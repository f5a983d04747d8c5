// SPDX-License-Identifier: Apache-2.0
// Brings quantize up and dequantize down through nodes that move elements, so that these move bytes and both arrive at what
// computes with integers.
//   move(dequantize(x, s))               ->  dequantize(move(x), s)      shuffle, slice, gather, padding, maximum pooling,
//                                                                        resize by nearest, concatenation of equal scales
//   quantize(move(x), s)                 ->  move(quantize(x, s))        the same; where `move` makes fewer elements than it
//                                                                        reads, only if all readers of x want the same
//   quantize(dequantize(x, s), s)        ->  x
//   two quantize of one value and scale  ->  one
// Scales along an axis (weights) go through shuffles that keep the axis. Form::kCanonical's passes run it in turn with
// themselves, so that weights behind a transposition are folded. Leaves alone: graph outputs in between, nodes on the host.
#include <algorithm>

#include "ops/dequantize/op.h"
#include "ops/gather/op.h"
#include "ops/quantize/op.h"
#include "ops/shuffle/op.h"
#include "ops/slice/op.h"
#include "passes/list.h"
#include "passes/quantization/quantization.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

// What chooses some of its input's elements.
bool dropsElements(ir::Node const& n)
{
    return n.op == &ops::slice::def() || n.op == &ops::gather::def();
}

class Moving
{
public:
    Moving(ir::Graph& g, PassContext const& ctx) : g_(g), ctx_(ctx) {}

    Result<bool> run()
    {
        TW_TRY(relyOnPositiveScales(g_, ctx_));
        bool changed = false;
        for (bool again = true; again;) {
            again = false;
            for (size_t i = 0; i < g_.nodes.size() && !again; ++i) {
                ir::Node& n = *g_.nodes[i];
                if (isQuantize(&n)) {
                    TW_ASSIGN(again, cancel(n));
                    if (!again)
                        TW_SET(again, merge(n));
                    if (!again)
                        TW_SET(again, moveUp(n));
                } else if (movesElements(n)) {
                    TW_ASSIGN(again, moveDown(n));
                }
            }
            changed = changed || again;
        }
        if (changed)
            g_.eraseUnusedValues();
        return changed;
    }

private:
    // quantize(dequantize(x, s), s)
    Result<bool> cancel(ir::Node& q)
    {
        auto const d = dequantizedOf(q.inputs[0]);
        if (!d || !d->isPerTensor() || !isPerTensor(q) || !haveSameScale(*d->scale, *q.inputs[1]) ||
            !replaceValue(g_, q.outputs[0], d->integers))
            return false;
        ir::Node* const dequantize = d->node;
        TW_TRY(relyOnEqualScales(*dequantize, q, ctx_));
        g_.eraseNode(&q);
        if (g_.useCount(dequantize->outputs[0]) == 0)
            g_.eraseNode(dequantize);
        return true;
    }

    Result<bool> merge(ir::Node& q)
    {
        for (ir::Node* other : readersOf(g_, q.inputs[0])) {
            if (other == &q)
                return false; // the first of its kind
            if (isQuantize(other) && isPerTensor(*other) && isPerTensor(q) &&
                haveSameScale(*other->inputs[1], *q.inputs[1]) && replaceValue(g_, q.outputs[0], other->outputs[0])) {
                TW_TRY(relyOnEqualScales(*other, q, ctx_));
                joinOrigins(*other, *other, q);
                g_.eraseNode(&q);
                return true;
            }
        }
        return false;
    }

    Result<bool> moveDown(ir::Node& n)
    {
        auto const first = dequantizedOf(n.inputs[0]);
        if (!first)
            return false;
        int axis = -1;
        std::vector<ir::Value*> inputs = n.inputs;
        std::vector<ir::Node const*> alike;
        for (size_t i = 0; i < movedInputs(n); ++i) {
            auto const d = dequantizedOf(n.inputs[i]);
            if (!d || n.inputs[i]->type != first->node->outputs[0]->type)
                return false;
            if (!d->isPerTensor()) {
                axis = n.op == &ops::shuffle::def() ? ops::shuffle::dimensionBehind(n, d->axis) : -1;
                if (axis < 0)
                    return false;
            } else if (!haveSameScale(*first->scale, *d->scale)) {
                return false;
            }
            alike.push_back(d->node);
            inputs[i] = d->integers;
        }
        int const position = g_.positionOf(&n);
        TW_ASSIGN(ir::Node * moved, addAlike(g_, n, inputs, position));
        auto attrs = std::make_unique<ops::dequantize::Attrs>(axis, n.outputs[0]->type);
        TW_ASSIGN(ir::Node * after, g_.addNode(ops::dequantize::def(), std::move(attrs),
                                               {moved->outputs[0], first->scale}, first->node->name, {}, position + 1));
        takePlaceOf(*after, *first->node);
        moved->outputs[0]->name += ".integers";
        after->outputs[0]->name = n.outputs[0]->name;
        std::vector<ir::Value*> const read(n.inputs.begin(), n.inputs.begin() + int64_t(movedInputs(n)));
        if (!replaceValue(g_, n.outputs[0], after->outputs[0])) {
            g_.eraseNode(after);
            g_.eraseNode(moved);
            return false;
        }
        for (ir::Node const* d : alike)
            TW_TRY(relyOnEqualScales(*first->node, *d, ctx_));
        g_.eraseNode(&n);
        eraseUnread(read);
        return true;
    }

    // Whether every reader of `x` is of the kind of `n` and read by nothing but quantize with the scale of `q`.
    bool allWant(ir::Value const& x, ir::Node const& n, ir::Node const& q)
    {
        for (ir::Node const* r : readersOf(g_, &x)) {
            if (isQuantize(r) && isPerTensor(*r) && haveSameScale(*r->inputs[1], *q.inputs[1]))
                continue;
            if (r->op != n.op || !movesElements(*r) || g_.isOutput(r->outputs[0]))
                return false;
            for (ir::Node const* s : readersOf(g_, r->outputs[0]))
                if (!isQuantize(s) || !isPerTensor(*s) || !haveSameScale(*s->inputs[1], *q.inputs[1]))
                    return false;
        }
        return true;
    }

    Result<bool> moveUp(ir::Node& q)
    {
        ir::Node* const n = onlyProducer(g_, q.inputs[0]);
        if (!n || !movesElements(*n) || !isPerTensor(q))
            return false;
        std::vector<ir::Value*> inputs = n->inputs;
        for (size_t i = 0; i < movedInputs(*n); ++i)
            if (!isFloating(inputs[i]->type) || inputs[i]->host || (dropsElements(*n) && !allWant(*inputs[i], *n, q)))
                return false;
        int const position = g_.positionOf(n);
        std::vector<ir::Node*> made;
        std::map<ir::Value*, ir::Value*> integers;
        for (size_t i = 0; i < movedInputs(*n); ++i) {
            ir::Value*& to = integers[inputs[i]];
            if (!to) {
                TW_ASSIGN(ir::Node * before,
                          g_.addNode(ops::quantize::def(), q.attrs->clone(), {inputs[i], q.inputs[1]}, q.name, {},
                                     position + int(made.size())));
                takePlaceOf(*before, q);
                made.push_back(before);
                to = before->outputs[0];
                to->name = inputs[i]->name + ".integers";
            }
            inputs[i] = to;
        }
        TW_ASSIGN(ir::Node * moved, addAlike(g_, *n, inputs, position + int(made.size())));
        moved->outputs[0]->name = q.outputs[0]->name;
        if (!replaceValue(g_, q.outputs[0], moved->outputs[0])) {
            g_.eraseNode(moved);
            for (size_t i = made.size(); i-- > 0;)
                g_.eraseNode(made[i]);
            return false;
        }
        g_.eraseNode(&q);
        g_.eraseNode(n);
        return true;
    }

    void eraseUnread(std::vector<ir::Value*> const& values)
    {
        for (size_t i = 0; i < values.size(); ++i)
            if (std::find(values.begin(), values.begin() + int64_t(i), values[i]) == values.begin() + int64_t(i) &&
                g_.useCount(values[i]) == 0)
                g_.eraseNode(values[i]->producer);
    }

    ir::Graph& g_;
    PassContext const& ctx_;
};

} // namespace

Result<bool> moveQuantization(ir::Graph& g, PassContext const& ctx)
{
    return Moving(g, ctx).run();
}

} // namespace tw::passes
