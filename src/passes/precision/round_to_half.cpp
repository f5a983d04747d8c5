// SPDX-License-Identifier: Apache-2.0
// Layers that are to be in FP16 by the user's word, on machines whose kernels are of FP32: with kOBEY_ or
// kPREFER_PRECISION_CONSTRAINTS what such a layer reads and makes is stored in f16. It computes in f32 between, as
// layers in FP16 do everywhere.
//   before: x f32 -> conv(x, w) -> relu -> y f32
//   after:  x f32 -> identity f16 -> identity f32 -> conv(., numbers of w in f16) -> identity f16 -> identity f32 -> relu -> y f32
// Which layers these are, and which ask in vain, choose_precisions.cpp says, as for machines with FP16. A tensor is
// rounded once for all who read it; one that only moves elements rounds nothing again.
// Expects Form::kFused: stands beside lower_precision, which does this for other machines, behind the fusions: what has
// become one layer is rounded as one. Never changes names and types of a graph's inputs and outputs.
#include <cstring>
#include <map>
#include <set>

#include "ops/identity/op.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/precision/precision.h"
#include "passes/quantization/quantization.h"
#include "passes/rewrite.h"
#include "recipe/recipes.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

class Rounding
{
public:
    Rounding(ir::Graph& g, Precisions const& p, recipe::Recipes* recipes) : g_(g), p_(p), recipes_(recipes)
    {
        weights_.recipes = recipes;
        for (auto const& v : g.values())
            if (isCast(v->producer) && isNarrowFloat(v->producer->inputs[0]->type))
                rounded_.insert(v.get());
    }

    Result<bool> run(Log& log)
    {
        auto const nodes = mapped<ir::Node*>(g_.nodes, [](auto const& n) { return n.get(); });
        for (ir::Node* n : nodes)
            if (p_.bound.contains(n))
                TW_TRY(round(*n));
        if (!changed_)
            return false;
        g_.eraseUnusedValues();
        log.info("FP16: {} layers compute in FP32 on tensors that are rounded to it, {} of these", p_.bound.size(),
                 rounded_.size());
        weights_.report(log);
        return true;
    }

private:
    Result<void> round(ir::Node& n)
    {
        bool const moves = movesElements(n) && rounded_.contains(n.inputs[0]);
        for (size_t i = 0; i < n.inputs.size(); ++i)
            if (p_.turns(n, i))
                TW_SET(n.inputs[i],
                       n.inputs[i]->isConstant() ? roundedConstant(*n.inputs[i]) : roundedBefore(n.inputs[i], n));
        for (ir::Value* y : n.outputs) {
            if (!p_.isOpen(y))
                continue;
            if (moves)
                rounded_.insert(y);
            else if (!isRounded(y))
                TW_TRY(roundResult(y));
        }
        return {};
    }

    bool isRounded(ir::Value const* y) const
    {
        std::vector<ir::Node*> const readers = readersOf(g_, y);
        return !g_.isOutput(y) && readers.size() == 1 && isCast(readers[0]) &&
               isNarrowFloat(readers[0]->outputs[0]->type);
    }
    ir::Value* added(ir::Value* y)
    {
        rounded_.insert(y);
        changed_ = true;
        return y;
    }
    Result<ir::Value*> roundedBefore(ir::Value* x, ir::Node const& reader)
    {
        if (rounded_.contains(x))
            return x;
        ir::Value*& known = known_[x];
        if (!known)
            TW_SET(known, addRounding(g_, x, g_.positionOf(&reader)));
        return added(known);
    }
    Result<void> roundResult(ir::Value* y)
    {
        bool const isOutput = g_.isOutput(y);
        TW_ASSIGN(ir::Value * to, roundForAll(g_, y));
        added(to);
        if (isOutput)
            to->name = std::exchange(y->name, y->name + " [not rounded]");
        return {};
    }
    Result<ir::Value*> roundedConstant(ir::Value& w)
    {
        ir::Value*& known = known_[&w];
        if (known)
            return known;
        TW_ASSIGN(ir::Value * half, weights_.convert(g_, w, DataType::kHalf));
        recipe::Computation c(recipes_ && recipes_->reaches(*half) ? recipes_ : nullptr);
        TW_ASSIGN(ir::Value * x, c.add(ops::identity::def(), ops::identity::Attrs(DataType::kFloat), {c.take(*half)}));
        auto constant = std::make_shared<ir::Constant>(*w.constant);
        TW_SET(constant->data, c.finish(x));
        size_t const bytes = constant->data->sizeBytes();
        bool const isSame = !recipes_ && bytes == w.constant->data->sizeBytes() &&
                            std::memcmp(constant->data->data(), w.constant->data->data(), bytes) == 0;
        if (isSame)
            return known = &w;
        changed_ = true;
        known = g_.addConstant(w.name, DataType::kFloat, ir::extentsOf(w.shape), std::move(constant));
        return known;
    }

    ir::Graph& g_;
    Precisions const& p_;
    recipe::Recipes* recipes_;
    NarrowWeights weights_;
    std::set<ir::Value const*> rounded_;
    std::map<ir::Value const*, ir::Value*> known_;
    bool changed_ = false;
};

} // namespace

Result<bool> roundToHalf(ir::Graph& g, PassContext const& ctx)
{
    if (ctx.target.computesHalf() || narrowType(ctx.permits, ctx.target) || !ctx.permits.has(Permission::kHalf) ||
        ctx.constraints == PrecisionConstraints::kIgnore)
        return false;
    TW_ASSIGN(Precisions const p, choosePrecisions(g, ctx));
    return Rounding(g, p, ctx.recipes).run(ctx.log);
}

} // namespace tw::passes
