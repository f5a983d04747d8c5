// SPDX-License-Identifier: Apache-2.0
// Makes one node of rotary positions, as exporters write them:
//   x c + concat(-x[h:], x[:h]) s                                          x1 = x[:h], x2 = x[h:]
//   concat(x1 c - x2 s, x2 c + x1 s), c and s with a number for each pair
//   the same two of neighbours: x1 = x[::2], x2 = x[1::2], put side by side by a dimension of their own (of the second the
//   reshape behind that may give any shape)
// and of concat(y, z[r:]) where x is z[:r]. Where x comes out of [B, S, heads, n] by a transpose of the two in the middle,
// the node stands in front of that, so that an attention behind it reads the rows where they lie. Expects
// Form::kCanonical. Stands in front of fuse_attention. Leaves alone: values inside that others read, cosines and sines of
// another type or rank than x, wishes of the user that differ.

#include "ops/concatenation/op.h"
#include "ops/elementwise/op.h"
#include "ops/rotary/op.h"
#include "ops/shuffle/op.h"
#include "ops/slice/op.h"
#include "ops/unary/op.h"
#include "passes/attention/attention.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/rewrite.h"
#include "passes/strided_view.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using Operation = ops::elementwise::Operation;

// A part of the last dimension, cut out by attributes.
std::optional<Selection> rowPartOf(ir::Value const* v)
{
    ir::Node const* n = v->producer;
    auto const part = n && n->op == &ops::slice::def() ? selectionOf(*n) : std::nullopt;
    bool const isOfRow = part && part->byAttributes && part->axis == v->rank() - 1 && part->x->shape.back().isConst();
    return isOfRow ? part : std::nullopt;
}

// Two tensors along the last dimension.
bool isPair(ir::Node const* n)
{
    return n && n->op == &ops::concatenation::def() && n->inputs.size() == 2 &&
           n->attrsAs<ops::concatenation::Attrs>().axis == n->outputs[0]->rank() - 1;
}

// A reshape, and a transpose behind it.
bool isReshapeInFront(ir::Node const* n)
{
    if (!isShuffle(n))
        return false;
    auto const& a = n->attrsAs<ops::shuffle::Attrs>();
    return a.hasReshape && a.firstTranspose.empty();
}

class RotaryMatch
{
public:
    RotaryMatch(ir::Graph& g, recipe::Recipes const* refit) : g_(g), refit_(refit) {}

    std::vector<ir::Node*> nodes;
    ir::Value *x = nullptr, *c = nullptr, *s = nullptr;
    ops::rotary::Attrs attrs;

    // `root` makes the result.
    bool from(ir::Node* root)
    {
        nodes = {root};
        if (!(is(root, Operation::kSum) ? whole(root) : pairs(root)))
            return false;
        attrs.size = x->shape.back().value();
        if (!isWeight(*c) || !isWeight(*s))
            return false;
        takeRest(root);
        return true;
    }

private:
    // The two inputs of concat, or of the concatenation of a dimension of their own behind a reshape, which gives any shape
    // where that is allowed.
    bool takePair(ir::Node* n, ir::Value*& first, ir::Value*& second, bool anyShape)
    {
        if (isPair(n)) {
            first = n->inputs[0];
            second = n->inputs[1];
            return true;
        }
        ir::Node* joined = isReshape(n) || (anyShape && isReshapeInFront(n)) ? n->inputs[0]->producer : nullptr;
        if (!isPair(joined))
            return false;
        ir::Value* parts[2];
        for (size_t i = 0; i < 2; ++i) {
            ir::Node* apart = joined->inputs[i]->producer;
            if (!isReshape(apart) || !joined->inputs[i]->shape.back().is(1) || n->outputs[0]->rank() == 0)
                return false;
            ir::Shape shape = apart->inputs[0]->shape;
            shape.push_back(1);
            ir::Shape twice = apart->inputs[0]->shape;
            twice.back() = twice.back() * ir::Dim(2);
            if (!(shape == joined->inputs[i]->shape) || (!anyShape && !(twice == n->outputs[0]->shape)))
                return false;
            nodes.push_back(apart);
            parts[i] = apart->inputs[0];
        }
        nodes.push_back(joined);
        first = parts[0];
        second = parts[1];
        attrs.interleaved = true;
        return true;
    }

    // first and second are the two halves, or the neighbours, of one tensor, which becomes x.
    bool areHalves(ir::Value* first, ir::Value* second)
    {
        auto const a = rowPartOf(first), b = rowPartOf(second);
        if (!a || !b || a->x != b->x)
            return false;
        int64_t const n = a->x->shape.back().value(), step = attrs.interleaved && n > 2 ? 2 : 1;
        bool const areHalf = n % 2 == 0 && a->size == n / 2 && b->size == n / 2 && a->step == step && b->step == step;
        if (!areHalf || a->start != 0 || b->start != (attrs.interleaved ? 1 : n / 2))
            return false;
        x = a->x;
        nodes.insert(nodes.end(), {first->producer, second->producer});
        return true;
    }

    ir::Value* negated(ir::Value* v)
    {
        ir::Node* n = v->producer;
        if (is(n, ops::unary::Operation::kNeg)) {
            nodes.push_back(n);
            return n->inputs[0];
        }
        for (size_t i : {0, 1})
            if (is(n, Operation::kProd) && numberOf(n->inputs[i], refit_) == -1.0 &&
                n->inputs[1 - i]->shape == v->shape) {
                nodes.push_back(n);
                return n->inputs[1 - i];
            }
        return nullptr;
    }

    // The other factor of a product with `v`.
    static ir::Value* factorOf(ir::Node const* n, ir::Value const* v)
    {
        if (!is(n, Operation::kProd))
            return nullptr;
        return n->inputs[0] == v ? n->inputs[1] : n->inputs[1] == v ? n->inputs[0] : nullptr;
    }

    // x c + turned s
    bool whole(ir::Node* root)
    {
        auto const begin = nodes;
        for (size_t i : {0, 1})
            for (size_t j : {0, 1}) {
                nodes = begin;
                attrs.interleaved = false;
                ir::Node *plain = root->inputs[i]->producer, *product = root->inputs[1 - i]->producer;
                ir::Value *first = nullptr, *second = nullptr;
                if (!is(plain, Operation::kProd) || !is(product, Operation::kProd))
                    return false;
                ir::Node* turned = product->inputs[j]->producer;
                if (!turned || !takePair(turned, first, second, false))
                    continue;
                first = negated(first);
                if (!first || !areHalves(second, first))
                    continue;
                c = factorOf(plain, x);
                s = product->inputs[1 - j];
                nodes.insert(nodes.end(), {plain, product, turned});
                if (c)
                    return true;
            }
        return false;
    }

    // concat(x1 c - x2 s, x2 c + x1 s)
    bool pairs(ir::Node* root)
    {
        ir::Value *low = nullptr, *high = nullptr;
        if (!takePair(root, low, high, true))
            return false;
        ir::Node *difference = low->producer, *sum = high->producer;
        if (!is(difference, Operation::kSub) || !is(sum, Operation::kSum))
            return false;
        ir::Node *kept = difference->inputs[0]->producer, *taken = difference->inputs[1]->producer;
        if (!is(kept, Operation::kProd) || !is(taken, Operation::kProd))
            return false;
        nodes.insert(nodes.end(), {difference, sum, kept, taken});
        for (size_t i : {0, 1})
            for (size_t j : {0, 1}) {
                ir::Value *x1 = kept->inputs[i], *x2 = taken->inputs[j];
                c = kept->inputs[1 - i];
                s = taken->inputs[1 - j];
                for (size_t k : {0, 1}) {
                    ir::Node *a = sum->inputs[k]->producer, *b = sum->inputs[1 - k]->producer;
                    if (factorOf(a, x2) == c && factorOf(b, x1) == s && areHalves(x1, x2)) {
                        nodes.insert(nodes.end(), {a, b});
                        return true;
                    }
                }
            }
        return false;
    }

    // [.., size] or [.., size / 2], the others 1 or those of x.
    bool isWeight(ir::Value const& v) const
    {
        if (v.type != x->type || v.rank() != x->rank() || !isFloating(v.type))
            return false;
        for (size_t d = 0; d + 1 < v.shape.size(); ++d)
            if (!v.shape[d].is(1) && !(v.shape[d] == x->shape[d]))
                return false;
        return v.shape.back().is(attrs.size) || v.shape.back().is(attrs.size / 2);
    }

    // concat(y, z[r:]) where x is z[:r]
    void takeRest(ir::Node* root)
    {
        auto const head = rowPartOf(x);
        auto const readers = readersOf(g_, root->outputs[0]);
        if (!head || head->start != 0 || head->step != 1 || readers.size() != 1 || !isPair(readers[0]) ||
            readers[0]->inputs[0] != root->outputs[0])
            return;
        auto const tail = rowPartOf(readers[0]->inputs[1]);
        if (!tail || tail->x != head->x || tail->step != 1 || tail->start != head->size ||
            tail->start + tail->size != head->x->shape.back().value())
            return;
        nodes.insert(nodes.end(), {x->producer, readers[0]->inputs[1]->producer, readers[0]});
        x = head->x;
    }

    ir::Graph& g_;
    recipe::Recipes const* refit_;
};

// The reshape of `n`, which is its transpose alone then.
Result<ir::Node*> takenApart(ir::Graph& g, ir::Node& n)
{
    TW_ASSIGN(ir::Value * v, addReshape(g, n.inputs[0], beforeTranspose(n), g.positionOf(&n)));
    if (!v)
        return static_cast<ir::Node*>(nullptr);
    v->producer->layers = n.layers;
    v->producer->device = n.device;
    ops::shuffle::Attrs a;
    a.firstTranspose = n.attrsAs<ops::shuffle::Attrs>().secondTranspose;
    n.attrs = a.clone();
    n.inputs = {v};
    return v->producer;
}

ops::shuffle::Attrs transpose()
{
    ops::shuffle::Attrs a;
    a.firstTranspose = kHeadsInside;
    return a;
}

// [1 or B, 1, S, n] -> [1 or B, S, 1, n]: the same elements in order.
Result<ir::Value*> turnedWeight(ir::Graph& g, ir::Value* v, int position)
{
    ir::Shape shape = v->shape;
    std::swap(shape[1], shape[2]);
    if (v->isConstant())
        return g.addConstant(v->name, v->type, ir::extentsOf(shape), v->constant);
    return addReshape(g, v, shape, position);
}

// rotary(transpose(p)) -> transpose(rotary(p)), p of [B, S, heads, n]; the body transposes.
Result<void> liftTranspose(ir::Graph& g, ir::Node& n)
{
    ir::Node* turning = n.inputs[0]->producer;
    if (!isShuffle(turning) || n.outputs[0]->rank() != 4)
        return {};
    auto const& a = turning->attrsAs<ops::shuffle::Attrs>();
    bool const isBehind = a.secondTranspose == kHeadsInside && a.firstTranspose.empty(),
               isAlone = a.firstTranspose == kHeadsInside && !a.hasReshape && a.secondTranspose.empty();
    if (!isBehind && !isAlone)
        return {};
    for (size_t i : {1, 2})
        if (!n.inputs[i]->shape[1].is(1) && !n.inputs[i]->shape[2].is(1))
            return {};
    ir::Shape rows = n.inputs[0]->shape;
    std::swap(rows[1], rows[2]);
    ir::Value* p = turning->inputs[0];
    if (isBehind && a.hasReshape) {
        TW_ASSIGN(p, addReshape(g, p, rows, g.positionOf(&n)));
        if (!p)
            return {};
    }
    std::vector<ir::Value*> inputs{p};
    for (size_t i : {1, 2}) {
        TW_ASSIGN(ir::Value * v, turnedWeight(g, n.inputs[i], g.positionOf(&n)));
        if (!v)
            return {}; // what was added is dead
        inputs.push_back(v);
    }
    auto body = std::move(n.body);
    // What the body read comes out of new inputs.
    std::vector<ir::Value*> const old = body->inputs;
    body->inputs.clear();
    for (size_t i = 0; i < old.size(); ++i) {
        ir::Value* in = body->addInput(inputs[i]->name, inputs[i]->type, inputs[i]->shape);
        ir::Value* v = nullptr;
        if (i == 0) {
            TW_ASSIGN(ir::Node * t, body->addNode(ops::shuffle::def(), transpose().clone(), {in}, "transposed", {}, 0));
            v = t->outputs[0];
        } else {
            TW_ASSIGN(v, addReshape(*body, in, old[i]->shape, 0));
        }
        body->replaceAllUses(old[i], v);
    }
    TW_ASSIGN(ir::Node * back, body->addNode(ops::shuffle::def(), transpose().clone(), {body->outputs[0]}, "back"));
    body->outputs = {back->outputs[0]};
    body->eraseUnusedValues();
    int const at = g.positionOf(&n);
    TW_ASSIGN(ir::Node * turned, g.addNode(*n.op, n.attrs->clone(), inputs, n.name, {}, at));
    turned->body = std::move(body);
    turned->layers = n.layers;
    turned->precision = n.precision;
    turned->outputTypes = n.outputTypes;
    turned->device = n.device;
    TW_ASSIGN(ir::Node * behind,
              g.addNode(ops::shuffle::def(), transpose().clone(), {turned->outputs[0]}, turning->name, {}, at + 1));
    takePlaceOf(*behind, *turning);
    ir::Value *from = n.outputs[0], *to = behind->outputs[0];
    to->name = from->name;
    g.replaceAllUses(from, to);
    g.eraseNode(&n);
    if (g.useCount(turning->outputs[0]) == 0)
        g.eraseNode(turning);
    return {};
}

} // namespace

Result<bool> fuseRotary(ir::Graph& g, PassContext const& ctx)
{
    auto const isRoot = [](ir::Node const& n) { return is(&n, Operation::kSum) || isPair(&n) || isReshapeInFront(&n); };
    return rewriteEach(g, isRoot, [&](ir::Node& root) -> Result<bool> {
        RotaryMatch m(g, ctx.recipes);
        if (!m.from(&root))
            return false;
        sortNodes(g, m.nodes);
        if (!canFuse(g, m.nodes))
            return false;
        if (isReshapeInFront(&root) && !isReshape(&root)) {
            TW_ASSIGN(m.nodes.back(), takenApart(g, root));
            if (!m.nodes.back())
                return false;
        }
        TW_ASSIGN(ir::Node * n,
                  fuseNodes(g, m.nodes, ops::rotary::def(), m.attrs.clone(), {{m.x, m.x}, {m.c, m.c}, {m.s, m.s}}));
        if (n)
            TW_TRY(liftTranspose(g, *n));
        return n != nullptr;
    });
}

} // namespace tw::passes
