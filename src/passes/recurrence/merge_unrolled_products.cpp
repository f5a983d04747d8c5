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

// A product, or a sum, of a part of x and a constant.
struct Step
{
    ir::Node *select = nullptr, *node = nullptr;
    Selection part;
    ir::Value* constant = nullptr;
};

class UnrolledProductMerger
{
public:
    UnrolledProductMerger(ir::Graph& g, PassContext const& ctx) : g_(g), ctx_(ctx) {}

    Result<bool> run()
    {
        TW_ASSIGN(bool const products, mergeAll(false));
        TW_ASSIGN(bool const sums, mergeAll(true));
        if (products || sums)
            g_.eraseUnusedValues();
        return products || sums;
    }

private:
    Result<bool> mergeAll(bool areSums)
    {
        std::vector<std::vector<Step>> groups;
        for (auto const& n : g_.nodes) {
            auto const step = areSums ? sumOf(*n) : productOf(*n);
            if (!step)
                continue;
            auto const group = std::ranges::find_if(groups, [&](auto const& steps) { return fits(steps, *step); });
            if (group == groups.end())
                groups.push_back({*step});
            else
                group->push_back(*step);
        }
        bool changed = false;
        for (auto const& steps : groups) {
            Selection const& first = steps[0].part;
            int64_t size = 0;
            for (Step const& s : steps)
                size += s.part.size;
            if (steps.size() < 2 || size * 2 < first.x->shape[size_t(first.axis)].value())
                continue;
            TW_TRY(merge(steps));
            changed = true;
        }
        return changed;
    }

    std::optional<Step> productOf(ir::Node& n) const
    {
        if (!ops::matrix_multiply::isBareProduct(n))
            return std::nullopt;
        auto const& a = n.attrsAs<ops::matrix_multiply::Attrs>();
        bool const isOfRows = a.a == MatrixOperation::kNone && a.b != MatrixOperation::kVector;
        return isOfRows && isConstantOf(*n.inputs[1], 2) ? stepOf(n, 0) : std::nullopt;
    }
    // With a row, of what a product has made.
    std::optional<Step> sumOf(ir::Node& n) const
    {
        if (!is(&n, ops::elementwise::Operation::kSum))
            return std::nullopt;
        size_t const at = n.inputs[0]->isConstant() ? 1 : 0;
        auto const s = isConstantOf(*n.inputs[1 - at], 1) ? stepOf(n, at) : std::nullopt;
        bool const isOfProduct = s && s->part.x->producer && ops::matrix_multiply::isBareProduct(*s->part.x->producer);
        return isOfProduct && n.outputs[0]->shape == n.inputs[at]->shape ? s : std::nullopt;
    }
    std::optional<Step> stepOf(ir::Node& n, size_t at) const
    {
        ir::Node* const select = onlyProducer(g_, n.inputs[at]);
        auto const part = select && canJoin(*select, n) ? selectionOf(*select) : std::nullopt;
        if (!part || part->step != 1 || !part->byAttributes || !part->x->shape[size_t(part->axis)].isConst() ||
            part->axis + 1 >= part->x->rank() || !n.outputs[0]->shape.back().isConst() ||
            n.inputs[1 - at]->rank() > part->x->rank())
            return std::nullopt;
        return Step{select, &n, *part, n.inputs[1 - at]};
    }
    // The row that is added to what the node makes, which then belongs to it; null: none.
    ir::Value* rowBehind(ir::Node const& n) const
    {
        ir::Node const* const sum = nextOf(g_, &n);
        ir::Value* const row = is(sum, ops::elementwise::Operation::kSum) ? otherInput(sum, n.outputs[0]) : nullptr;
        return row && isConstantOf(*row, 1) ? row : nullptr;
    }
    // Of weights that refit reaches: whether they are the same ones.
    bool stayEqual(ir::Value const* a, ir::Value const* b) const
    {
        bool const mayChange = ctx_.recipes && a && b && (ctx_.recipes->reaches(*a) || ctx_.recipes->reaches(*b));
        return areSame(a, b) && (!mayChange || a->constant->data == b->constant->data);
    }
    bool fits(std::vector<Step> const& steps, Step const& s) const
    {
        Step const& first = steps[0];
        return first.part.x == s.part.x && first.part.axis == s.part.axis &&
               ir::equalAttrs(*first.node->attrs, *s.node->attrs) && stayEqual(first.constant, s.constant) &&
               stayEqual(rowBehind(*first.node), rowBehind(*s.node)) &&
               std::ranges::all_of(steps, [&](Step const& other) { return canJoin(*other.node, *s.node); });
    }

    // Part of `whole` that `step` had of x, as the step's result.
    Result<ir::Value*> partOf(ir::Value* whole, Step const& step)
    {
        ir::Node const& select = *step.select;
        auto attrs = select.attrs->clone();
        std::vector<ir::Value*> inputs = select.inputs;
        inputs[0] = whole;
        if (select.op == &ops::slice::def())
            static_cast<ops::slice::Attrs&>(*attrs).size.back() = whole->shape.back().value();
        TW_ASSIGN(ir::Node * part,
                  g_.addNode(*select.op, std::move(attrs), inputs, select.name, {}, g_.positionOf(step.node)));
        takePlaceOf(*part, select);
        return part->outputs[0];
    }

    Result<void> merge(std::vector<Step> const& steps)
    {
        Step const& first = steps[0];
        ir::Value* const x = first.part.x;
        auto nodes = mapped<ir::Node const*>(steps, [&](Step const& s) { return s.node; });
        TW_ASSIGN(ir::Node * whole,
                  g_.addNode(*first.node->op, first.node->attrs->clone(), {x, withRank(g_, *first.constant, x->rank())},
                             "", {}, g_.positionOf(first.node)));
        joinAlike(*whole, nodes);
        whole->outputs[0]->name = first.node->outputs[0]->name + ".merged";
        ctx_.log.info("fused {}", whole->name);
        for (Step const& s : steps) {
            TW_ASSIGN(ir::Value * part, partOf(whole->outputs[0], s));
            ir::Value* const from = s.node->outputs[0];
            if (!(part->shape == from->shape))
                return internalError("merged products have parts of another shape for {}", s.node->name);
            part->name = from->name;
            g_.replaceAllUses(from, part);
            g_.eraseNode(s.node);
            g_.eraseNode(s.select);
        }
        return {};
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
