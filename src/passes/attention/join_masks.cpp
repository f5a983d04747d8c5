// SPDX-License-Identifier: Apache-2.0
// Everything that is added to scores or hides some of them, as one mask that is made beside them and added once:
//   where(keep, max((s + a) c + b, lowest), fill)  ->  s c + where(keep, max(a c + b, lowest), fill)
// Decoders with ALiBi have the places of keys beside what is hidden (BLOOM and Falcon add both, MPT hides afterwards), others take the
// lowest number there is in place of what is below it (XGLM). Scores are large, one for each pair of a query and a key, and read once
// for each step; masks are broadcast along some of their dimensions, and all layers share one. Expects Form::kImported. Stands with the
// passes that run until nothing changes, as share_nodes has masks that are alike. fuse_attention, which knows one mask, takes what this leaves.
// Numbers that hide are so low that a score does not change them. Leaves alone: what fuse_attention reads as it is (one sum, one
// selection, a sum behind a selection), steps that others read, wishes of the user, masks with all dimensions of the scores that may be scores.
#include <algorithm>
#include <ranges>

#include "ops/elementwise/op.h"
#include "ops/select/op.h"
#include "ops/softmax/op.h"
#include "passes/attention/attention.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using Operation = ops::elementwise::Operation;
using ir::Value;

constexpr int kMostSteps = 8; // in front of a softmax, reshapes too

// A sum, a selection or a maximum, of scores and of something that is broadcast to them; a reshape or a factor between those, which stays.
struct Step
{
    ir::Node* node;
    size_t scores; // input that they are
    bool stays = false;
};

// Sums with such a number are that number, for scores as networks have them: half of its last digit is 16 in FP16, above 1e22 in FP32.
bool hides(std::optional<double> number, DataType type)
{
    return number && *number <= std::max(numberType(type).lowest, -1e30);
}

std::optional<Step> stepOf(ir::Node* n, recipe::Recipes const* refit)
{
    if (!n || hasWish(*n))
        return std::nullopt;
    ir::Shape const& y = n->outputs[0]->shape;
    DataType const type = n->outputs[0]->type;
    double factor = 1;
    if (Value const* const from = isReshape(n) ? n->inputs[0] : scaledBy(n, refit, factor))
        return Step{n, size_t(from != n->inputs[0]), true};
    if (n->op == &ops::select::def()) {
        for (size_t i : {1, 2})
            if (hides(numberOf(n->inputs[3 - i], refit), type) && n->inputs[i]->shape == y)
                return Step{n, i};
        return std::nullopt;
    }
    if (is(n, Operation::kMax)) {
        for (size_t i : {0, 1})
            if (hides(numberOf(n->inputs[1 - i], refit), type) && n->inputs[i]->shape == y)
                return Step{n, i};
        return std::nullopt;
    }
    if (!is(n, Operation::kSum))
        return std::nullopt;
    for (size_t i : {0, 1})
        if (ir::Shape const& mask = n->inputs[1 - i]->shape; n->inputs[i]->shape == y && mask.size() == y.size() &&
                                                             !isScores(n->inputs[1 - i]) &&
                                                             (!(mask == y) || isScores(n->inputs[i])))
            return Step{n, i};
    return std::nullopt;
}

// From the softmax on back, as far as there are such steps; ends with one that goes.
std::vector<Step> stepsOf(ir::Graph const& g, ir::Node const& softmax, recipe::Recipes const* refit)
{
    std::vector<Step> steps;
    for (Value* v = softmax.inputs[0]; int(steps.size()) < kMostSteps;) {
        auto const step = stepOf(onlyProducer(g, v), refit);
        if (!step)
            break;
        if (!isReshape(step->node) || !steps.empty())
            steps.push_back(*step);
        v = step->node->inputs[step->scores];
    }
    while (!steps.empty() && steps.back().stays)
        steps.pop_back();
    return steps;
}

bool isSum(Step const& s)
{
    return is(s.node, Operation::kSum);
}

// Whether fuse_attention takes the steps as they are, or there is nothing to be joined.
bool isPlain(std::vector<Step> const& steps)
{
    std::vector<Step> own;
    std::ranges::copy_if(steps, std::back_inserter(own), [](Step const& s) { return !isReshape(s.node); });
    auto const isSelect = [](Step const& s) { return s.node->op == &ops::select::def(); };
    return own.empty() || (own.size() == 1 && (isSum(own[0]) || isSelect(own[0]))) ||
           (own.size() == 2 && isSum(own[0]) && isSelect(own[1]));
}

std::vector<ir::Node const*> nodesThatGo(std::vector<Step> const& steps)
{
    std::vector<ir::Node const*> nodes;
    for (Step const& s : steps | std::views::reverse)
        if (!s.stays)
            nodes.push_back(s.node);
    return nodes;
}

class MaskJoin
{
public:
    MaskJoin(ir::Graph& g, std::vector<Step> const& steps) : g_(g), steps_(steps), at_(g.positionOf(steps[0].node)) {}

    // The mask of all steps, in front of the last of them; null: there is no way to say it.
    Result<Value*> make()
    {
        Value* mask = nullptr;
        for (auto s = steps_.rbegin(); s != steps_.rend(); ++s) {
            bool const moves = isReshape(s->node);
            TW_ASSIGN(Value * next, moves ? reshaped(mask, *s->node) : joined(mask, *s));
            if (moves && mask && !next) {
                std::ranges::for_each(added_ | std::views::reverse, [&](ir::Node* n) { g_.eraseNode(n); });
                return next;
            }
            mask = next;
        }
        return mask;
    }

private:
    ir::Graph& g_;
    std::vector<Step> const& steps_;
    int at_;
    std::vector<ir::Node*> added_;

    Result<Value*> add(ir::Node const& like, std::vector<Value*> inputs)
    {
        TW_ASSIGN(ir::Node * n,
                  g_.addNode(*like.op, like.attrs->clone(), std::move(inputs), like.name + ".mask", {}, at_++));
        n->layers = like.layers;
        n->device = like.device;
        added_.push_back(n);
        return n->outputs[0];
    }

    // Null for a maximum or a multiple of nothing.
    Result<Value*> joined(Value* mask, Step const& s)
    {
        ir::Node const& n = *s.node;
        std::vector<Value*> inputs = n.inputs;
        if (isSum(s) && !mask)
            return n.inputs[1 - s.scores];
        if (!mask && (s.stays || is(&n, Operation::kMax)))
            return mask;
        if (!mask) {
            Tensor zero(n.outputs[0]->type, ir::extentsOf(ir::Shape(n.outputs[0]->shape.size(), 1)));
            zero.ref().set(0, 0);
            mask = g_.addConstant(n.name + ".zero", zero.ref().type, zero.ref().dims, zero.data());
        }
        inputs[s.scores] = mask;
        return add(n, std::move(inputs));
    }

    // A mask of [B * heads or 1, Si or 1, Sj or 1] where [B * heads, Si, Sj] becomes [B, heads, Si, Sj].
    Result<Value*> reshaped(Value* mask, ir::Node const& n)
    {
        Value* const none = nullptr;
        ir::Shape const &from = n.inputs[0]->shape, &to = n.outputs[0]->shape;
        if (!mask || from == to)
            return mask;
        if (!joinsHeads(to, from))
            return none;
        ir::Shape const& m = mask->shape;
        ir::Shape const wanted{m[0].is(1) ? ir::Dim(1) : to[0], m[0].is(1) ? ir::Dim(1) : to[1], m[1], m[2]};
        TW_ASSIGN(Value * y, addReshape(g_, mask, wanted, at_));
        if (y) {
            added_.push_back(y->producer);
            ++at_;
        }
        return y;
    }
};

Result<bool> join(ir::Graph& g, ir::Node const& softmax, recipe::Recipes const* refit)
{
    std::vector<Step> const steps = stepsOf(g, softmax, refit);
    if (isPlain(steps))
        return false;
    TW_ASSIGN(Value * mask, MaskJoin(g, steps).make());
    if (!mask)
        return false;
    ir::Node* const last = steps[0].node;
    Value* const y = last->outputs[0];
    TW_ASSIGN(ir::Node * sum, g.addNode(ops::elementwise::def(), ops::elementwise::Attrs(Operation::kSum).clone(),
                                        {y, mask}, last->name, {}, g.positionOf(last) + 1));
    takePlaceOf(*sum, *last);
    joinAlike(*sum, nodesThatGo(steps));
    putBehind(g, y, sum->outputs[0], {sum});
    // The steps hand on what they are given.
    for (Step const& s : steps)
        if (!s.stays) {
            g.replaceAllUses(s.node->outputs[0], s.node->inputs[s.scores]);
            g.eraseNode(s.node);
        }
    return true;
}

} // namespace

Result<bool> joinMasks(ir::Graph& g, PassContext const& ctx)
{
    return rewriteEach(
        g, [](ir::Node const& n) { return n.op == &ops::softmax::def() && n.inputs[0]->rank() > 2; },
        [&](ir::Node& n) { return join(g, n, ctx.recipes); });
}

} // namespace tw::passes
