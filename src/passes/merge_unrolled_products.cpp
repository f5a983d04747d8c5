// SPDX-License-Identifier: Apache-2.0
// Makes one matrix product of those that a sequence was unrolled into: the same weights for each of its steps.
//   x[:, 0] w + b, x[:, 1] w + b, ..      ->  y = x w + b, then y[:, 0], y[:, 1], ..
// w is read once, and one product of many rows fills a machine better than many of one. Steps are slices of one axis or
// gathered by a constant; together they have at least half of it. The bias is a constant row, the same for all, and may
// be missing. Expects Form::kCanonical. Stands after sink_reshapes, which brings steps, products and biases together,
// and before fuse_activation, which takes the sum. Leaves alone: steps along the axis that is summed, products of other
// tensors (what a step hands to the next one), weights that refit may reach, wishes of the user that
// differ.
#include <algorithm>

#include "ops/elementwise/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/slice/op.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/rewrite.h"
#include "passes/strided_view.h"
#include "recipe/recipes.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using ops::matrix_multiply::MatrixOperation;

struct Step
{
    ir::Node *select = nullptr, *product = nullptr, *sum = nullptr; // sum: null without bias
    ir::Value* bias = nullptr;
    int axis = 0;
    int64_t size = 0; // of the axis

    ir::Value* x() const { return select->inputs[0]; }
    ir::Node* last() const { return sum ? sum : product; }
    ir::Value* weights() const { return product->inputs[1]; }
};

class UnrolledProductMerger
{
public:
    UnrolledProductMerger(ir::Graph& g, PassContext const& ctx) : g_(g), ctx_(ctx) {}

    Result<bool> run()
    {
        std::vector<std::vector<Step>> groups;
        for (auto const& n : g_.nodes) {
            Step const step = stepOf(n.get());
            if (!step.product)
                continue;
            auto const group =
                std::find_if(groups.begin(), groups.end(), [&](auto const& steps) { return fits(steps, step); });
            if (group == groups.end())
                groups.push_back({step});
            else
                group->push_back(step);
        }
        bool changed = false;
        for (auto const& steps : groups) {
            int64_t size = 0;
            for (Step const& s : steps)
                size += s.size;
            if (steps.size() < 2 || size * 2 < steps[0].x()->shape[size_t(steps[0].axis)].value())
                continue;
            TW_ASSIGN(bool const merged, merge(steps));
            changed = changed || merged;
        }
        if (changed)
            g_.eraseUnusedValues();
        return changed;
    }

private:
    Step stepOf(ir::Node* n) const
    {
        Step s;
        if (!ops::matrix_multiply::isBareProduct(*n))
            return {};
        auto const& a = n->attrsAs<ops::matrix_multiply::Attrs>();
        s.select = onlyProducer(g_, n->inputs[0]);
        if (a.a != MatrixOperation::kNone || a.b == MatrixOperation::kVector || !isConstantOf(*n->inputs[1], 2) ||
            !s.select || !canJoin(*s.select, *n))
            return {};
        auto const part = selectionOf(*s.select);
        if (!part || part->step != 1 || !part->byAttributes || !part->x->shape[size_t(part->axis)].isConst() ||
            part->axis + 1 >= part->x->rank())
            return {};
        s.axis = part->axis;
        s.size = part->size;
        s.product = n;
        takeBias(s);
        return s;
    }
    // Of weights that refit reaches: whether they are the same ones.
    bool stayEqual(ir::Value const* a, ir::Value const* b) const
    {
        bool const mayChange = ctx_.recipes && a && b && (ctx_.recipes->reaches(*a) || ctx_.recipes->reaches(*b));
        return areSame(a, b) && (!mayChange || a->constant->data == b->constant->data);
    }
    void takeBias(Step& s) const
    {
        ir::Value const* y = s.product->outputs[0];
        ir::Node* const sum = nextOf(g_, s.product);
        if (!is(sum, ops::elementwise::Operation::kSum))
            return;
        ir::Value* const bias = otherInput(sum, y);
        if (!isConstantOf(*bias, 1) || !(sum->outputs[0]->shape == y->shape) || !canJoin(*s.product, *sum))
            return;
        s.sum = sum;
        s.bias = bias;
    }
    bool fits(std::vector<Step> const& steps, Step const& s) const
    {
        Step const& first = steps[0];
        auto const &a = first.product->attrsAs<ops::matrix_multiply::Attrs>(),
                   &b = s.product->attrsAs<ops::matrix_multiply::Attrs>();
        return first.x() == s.x() && first.axis == s.axis && a.b == b.b && stayEqual(first.weights(), s.weights()) &&
               stayEqual(first.bias, s.bias) && std::all_of(steps.begin(), steps.end(), [&](Step const& other) {
                   return canJoin(*other.product, *s.product) && canJoin(*other.last(), *s.last());
               });
    }

    // Part of `whole` that `step` had of x, as the step's result.
    Result<ir::Value*> partOf(ir::Value* whole, Step const& step)
    {
        int const position = g_.positionOf(step.last());
        ir::Node const& select = *step.select;
        auto attrs = select.attrs->clone();
        std::vector<ir::Value*> inputs = select.inputs;
        inputs[0] = whole;
        if (select.op == &ops::slice::def())
            static_cast<ops::slice::Attrs&>(*attrs).size.back() = whole->shape.back().value();
        TW_ASSIGN(ir::Node * part, g_.addNode(*select.op, std::move(attrs), inputs, select.name, {}, position));
        takePlaceOf(*part, select);
        return part->outputs[0];
    }

    Result<bool> merge(std::vector<Step> const& steps)
    {
        Step const& first = steps[0];
        int const rank = first.x()->rank();
        if (!first.last()->outputs[0]->shape.back().isConst() || first.weights()->rank() > rank ||
            (first.bias && first.bias->rank() > rank))
            return false;
        std::vector<ir::Node const*> products, sums;
        for (Step const& s : steps) {
            products.push_back(s.product);
            sums.push_back(s.sum);
        }
        TW_ASSIGN(ir::Node * product,
                  g_.addNode(ops::matrix_multiply::def(), first.product->attrs->clone(),
                             {first.x(), withRank(g_, *first.weights(), rank)}, "", {}, g_.positionOf(first.product)));
        joinAlike(*product, products);
        ir::Node* last = product;
        if (first.bias) {
            TW_ASSIGN(last, g_.addNode(ops::elementwise::def(), first.sum->attrs->clone(),
                                       {product->outputs[0], withRank(g_, *first.bias, rank)}, "", {},
                                       g_.positionOf(product) + 1));
            joinAlike(*last, sums);
        }
        product->outputs[0]->name = first.product->outputs[0]->name + ".merged";
        last->outputs[0]->name = first.last()->outputs[0]->name + ".merged";
        ctx_.log.info("fused " + product->name);
        for (Step const& s : steps) {
            TW_ASSIGN(ir::Value * part, partOf(last->outputs[0], s));
            ir::Value* const from = s.last()->outputs[0];
            if (!(part->shape == from->shape))
                return internalError("merged products have parts of another shape for " + s.last()->name);
            part->name = from->name;
            g_.replaceAllUses(from, part);
            if (s.sum)
                g_.eraseNode(s.sum);
            g_.eraseNode(s.product);
            g_.eraseNode(s.select);
        }
        return true;
    }

    ir::Graph& g_;
    PassContext const& ctx_;
};

} // namespace

Result<bool> mergeUnrolledProducts(ir::Graph& g, PassContext const& ctx)
{
    return UnrolledProductMerger(g, ctx).run();
}

} // namespace tw::passes
