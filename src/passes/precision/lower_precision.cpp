// SPDX-License-Identifier: Apache-2.0
// Turns f32 into the narrow type of a build (narrowType(); here f16) between the network's inputs and outputs.
//   before: x f32 -> conv(x, w f32) -> softmax -> y f32
//   after:  x f32 -> identity f16 -> conv(., w f16) -> softmax -> identity f32 -> y
// choose_precisions.cpp says which nodes keep f32 (where a clock is asked, the builder's types.cpp calls lowerTo() with
// what came of it, and the pass is not run); conversions stand where both kinds meet, one for each value. Weights
// are converted here, once for all their readers, and keep their layer, role and name (refit finds them); what FP16
// cannot hold is counted in one warning. Graph inputs and outputs keep their types, in regions too. Shape tensors,
// integers and attributes (an attention's scale and fill, an epsilon) stay as they are.
// Expects Form::kFused: stands after the fusions, so that softmax, layer_norm, attention, GELU and pointwise chains are
// single nodes, which compute in float inside. A fused node's body reads and makes what the node does and computes in
// f32 between.
#include <map>

#include "ir/op_def.h"
#include "ir/shape_values.h"
#include "ops/identity/op.h"
#include "ops/pointwise/op.h"
#include "passes/list.h"
#include "passes/precision/precision.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

class Lowering
{
public:
    Lowering(ir::Graph& g, Precisions const& p, NarrowWeights& weights) : g_(g), p_(p), weights_(weights) {}

    Result<bool> run()
    {
        auto nodes = mapped<ir::Node*>(g_.nodes, [&](auto const& n) { return n.get(); });
        for (ir::Node* n : nodes)
            TW_TRY(p_.isNarrow(n) ? lower(*n) : keep(*n));
        TW_TRY(restoreOutputs());
        removeConversions(nodes);
        g_.eraseUnusedValues();
        return !p_.narrow.empty();
    }
    int casts() const { return casts_; }

private:
    bool isOpen(ir::Value const* v) const { return p_.isOpen(v); }

    Result<void> lower(ir::Node& n)
    {
        for (size_t i = 0; i < n.inputs.size(); ++i)
            if (p_.turns(n, i))
                TW_SET(n.inputs[i], as(p_.type, n.inputs[i], n));
        return makeNarrow(n, p_.type, [&](size_t i) { return isOpen(n.outputs[i]); });
    }

    // What was f32 for this node stays so.
    Result<void> keep(ir::Node& n)
    {
        for (ir::Value*& x : n.inputs)
            if (!readsAnyFloat(n) && isLowered(x))
                TW_SET(x, as(DataType::kFloat, x, n));
        return n.body ? fitBody(n) : Result<void>();
    }
    bool isLowered(ir::Value const* v) const { return v && p_.isNarrow(v->producer) && isNarrowFloat(v->type); }

    // `v` in another type, made once, before the first node that asks.
    Result<ir::Value*> as(DataType type, ir::Value* v, ir::Node const& reader)
    {
        ir::Value*& known = converted_[v];
        if (known)
            return known;
        if (v->isConstant()) {
            TW_ASSIGN(known, weights_.convert(g_, *v, p_.type));
        } else {
            TW_ASSIGN(known, addCast(g_, v, type, g_.positionOf(&reader)));
            ++casts_;
        }
        return known;
    }

    Result<void> restoreOutputs()
    {
        for (ir::Value*& y : g_.outputs) {
            if (!isLowered(y))
                continue;
            std::string const name = y->name;
            ir::Value* x = y;
            if (ir::Value* known = converted_[x]; known && !g_.isOutput(known)) {
                y = known;
            } else {
                TW_ASSIGN(y, addCast(g_, x, DataType::kFloat, -1));
                ++casts_;
            }
            y->name = name;
            x->name = name + " [" + nameOf(x->type) + "]";
        }
        return {};
    }

    // Conversions of the network itself between what is one type now.
    void removeConversions(std::vector<ir::Node*> const& nodes)
    {
        for (ir::Node* n : nodes)
            if (n->op == &ops::identity::def() && isNarrowFloat(n->inputs[0]->type) &&
                n->outputs[0]->type == n->inputs[0]->type && !p_.shapes.contains(n->outputs[0]) &&
                replaceValue(g_, n->outputs[0], n->inputs[0]))
                g_.eraseNode(n);
    }

    ir::Graph& g_;
    Precisions const& p_;
    std::map<ir::Value const*, ir::Value*> converted_;
    NarrowWeights& weights_;
    int casts_ = 0;
};

} // namespace

Result<Lowered> lowerTo(ir::Graph& g, Precisions const& p, NarrowWeights& weights)
{
    Lowered out;
    if (p.narrow.empty())
        return out;
    Lowering lowering(g, p, weights);
    TW_ASSIGN(out.changed, lowering.run());
    out.casts = lowering.casts();
    return out;
}

Result<bool> lowerPrecision(ir::Graph& g, PassContext const& ctx)
{
    if (!narrowType(ctx.permits, ctx.target))
        return false;
    TW_ASSIGN(Precisions const p, choosePrecisions(g, ctx));
    for (auto const& n : g.nodes)
        if (auto const kept = p.kept.find(n.get()); kept != p.kept.end())
            ctx.log.verbose("FP32: '{}' ({}): {}", n->name, n->op->name, kept->second);
    if (p.narrow.empty())
        return false;
    NarrowWeights weights;
    weights.recipes = ctx.recipes;
    TW_ASSIGN(Lowered const done, lowerTo(g, p, weights));
    ctx.log.info("{}: {} layers, {} stay in FP32, {} conversions between them", numberType(p.type).shown,
                 p.narrow.size(), p.kept.size(), done.casts);
    weights.report(ctx.log);
    return done.changed;
}

} // namespace tw::passes
