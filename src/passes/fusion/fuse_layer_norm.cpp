// SPDX-License-Identifier: Apache-2.0
// Makes one layer_norm of the nodes that exporters write for a norm:
//   m = mean(x), d = x - m, v = mean(d^2), y = d / sqrt(v + e) * gamma + beta               (PyTorch)
//   m = mean(x), v = mean((x - m)^2), r = 1 / sqrt(v + e) * gamma, y = x r + (beta - m r)   (TensorFlow)
//   v = mean(x^2) - mean(x)^2, or the larger of that and 0                                  (Flax)
//   v = mean(x^2), y = x / sqrt(v + e) * gamma                                              (RMS norm)
// and of an activation after them. d^2 may be a power or a product, 1 / sqrt a division or a reciprocal, d may be
// computed twice; gamma and beta may be missing. A network in FP16 may compute this in f32 between two conversions,
// with gamma and beta before or after the second, and e may have become nothing; the node then reads and makes f16.
// Means are over any dimensions; gamma and beta are constants with a number for each place of a set, or for each
// position in one dimension. A group norm reshapes x to this and back, or on to another shape, with gamma and beta inside or
// after. Expects Form::kCanonical. Stands in front of the fusions that would take single nodes of the pattern. Leaves alone:
// values inside that others read, wishes of the user that differ.
#include <algorithm>
#include <cmath>

#include "ops/elementwise/op.h"
#include "ops/identity/op.h"
#include "ops/reduce/op.h"
#include "ops/shuffle/op.h"
#include "ops/unary/op.h"
#include "passes/fuse_nodes.h"
#include "passes/fusion/match_activation.h"
#include "passes/fusion/norm_sets.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/rewrite.h"
#include "recipe/recipes.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using Operation = ops::elementwise::Operation;

// The conversion between f16 and f32.
bool isCast(ir::Node const* n, DataType from, DataType to)
{
    return n && n->op == &ops::identity::def() && n->inputs[0]->type == from && n->outputs[0]->type == to;
}

bool isRoot(ir::Node const& n)
{
    return is(&n, ops::unary::Operation::kSqrt);
}

// The reshape that makes x, perhaps with a conversion after it; null: none.
ir::Node* reshapeOf(ir::Value const& x)
{
    ir::Node* n = x.producer;
    if (isCast(n, DataType::kHalf, DataType::kFloat))
        n = n->inputs[0]->producer;
    return isReshape(n) ? n : nullptr;
}

class NormPattern
{
public:
    NormPattern(ir::Graph& g, recipe::Recipes const* refit) : g_(g), refit_(refit) {}

    std::vector<ir::Node*> nodes;
    ir::Value* x = nullptr;
    ir::Value *gamma = nullptr, *beta = nullptr; // constants, null: none
    ops::layer_norm::Attrs attrs;

    // `root` is a square root.
    bool from(ir::Node* root)
    {
        if (!variance(root))
            return false;
        attrs.rms = !centered_;
        return (byDifference(root) || byFactor(root)) && setAttributes(attrs, sets_, x->shape);
    }

private:
    // A mean that keeps the dimensions that it is taken over; all of a pattern are over the same.
    bool isMean(ir::Node const* n)
    {
        if (!n || n->op != &ops::reduce::def())
            return false;
        auto const& a = n->attrsAs<ops::reduce::Attrs>();
        if (a.kind != ops::reduce::Kind::kAvg || !a.keepDims || a.axes == 0 ||
            (sets_.normalized != 0 && sets_.normalized != a.axes))
            return false;
        sets_.normalized = a.axes;
        return true;
    }

    // sqrt(variance + e)
    bool variance(ir::Node* root)
    {
        ir::Node* sum = root->inputs[0]->producer;
        ir::Node* average = sum;
        attrs.epsilon = 0; // 1e-12 in FP16, whose sum is no node any more
        if (is(sum, Operation::kSum)) {
            size_t const constantAt = sum->inputs[1]->isConstant() ? 1 : 0;
            auto const epsilon = numberOf(sum->inputs[constantAt], refit_);
            if (!epsilon || !(*epsilon >= 0) || !std::isfinite(*epsilon))
                return false;
            attrs.epsilon = *epsilon;
            average = sum->inputs[1 - constantAt]->producer;
            nodes.push_back(sum);
        }
        nodes.push_back(root);
        ir::Node* positive = average; // max(0, .), against rounding errors
        if (is(average, Operation::kMax)) {
            size_t const constantAt = average->inputs[1]->isConstant() ? 1 : 0;
            if (numberOf(average->inputs[constantAt], refit_) != 0.0)
                return false;
            average = average->inputs[1 - constantAt]->producer;
        } else if (average && average->op == &ops::activation::def() &&
                   average->attrsAs<ops::activation::Attrs>().kind == ops::activation::Kind::kRelu) {
            average = average->inputs[0]->producer;
        }
        if (average != positive)
            nodes.push_back(positive);
        if (is(average, Operation::kSub))
            return ofSquares(average);
        if (average != positive || !isMean(average) || !isSquare(average->inputs[0]->producer, refit_))
            return false;
        return ofDifference(average, average->inputs[0]->producer);
    }

    // mean((x - mean(x))^2), or mean(x^2)
    bool ofDifference(ir::Node* average, ir::Node* square)
    {
        nodes.insert(nodes.end(), {square, average});
        ir::Node* difference = square->inputs[0]->producer;
        if (is(difference, Operation::kSub) && isMean(difference->inputs[1]->producer) &&
            difference->inputs[1]->producer->inputs[0] == difference->inputs[0]) {
            x = difference->inputs[0];
            mean_ = difference->inputs[1]->producer;
            nodes.insert(nodes.end(), {mean_, difference});
        } else {
            x = square->inputs[0];
            centered_ = false;
        }
        return isFloating(x->type);
    }

    // mean(x^2) - mean(x)^2
    bool ofSquares(ir::Node* difference)
    {
        ir::Node *average = difference->inputs[0]->producer, *squared = difference->inputs[1]->producer;
        if (!isMean(average) || !isSquare(average->inputs[0]->producer, refit_) || !isSquare(squared, refit_))
            return false;
        mean_ = squared->inputs[0]->producer;
        x = average->inputs[0]->producer->inputs[0];
        if (!isMean(mean_) || mean_->inputs[0] != x || !isFloating(x->type))
            return false;
        nodes.insert(nodes.end(), {difference, average, average->inputs[0]->producer, squared, mean_});
        return true;
    }

    // What is divided: x - mean, or x where there is no mean.
    bool isDifference(ir::Value* v)
    {
        if (!centered_)
            return v == x;
        ir::Node* n = v->producer;
        if (!is(n, Operation::kSub) || n->inputs[0] != x)
            return false;
        if (n->inputs[1] != mean_->outputs[0]) {
            ir::Node* again = n->inputs[1]->producer; // another mean of the same
            if (!isMean(again) || again->inputs[0] != x)
                return false;
            nodes.push_back(again);
        }
        nodes.push_back(n);
        return true;
    }

    // 1 / root: a reciprocal or a division of a constant one; null when `root` is not turned over.
    ir::Node* inverse(ir::Node* root) const
    {
        ir::Node* n = nextOf(g_, root);
        bool const isReciprocal = is(n, ops::unary::Operation::kRecip);
        bool const isDivision =
            is(n, Operation::kDiv) && n->inputs[1] == root->outputs[0] && numberOf(n->inputs[0], refit_) == 1.0;
        return isReciprocal || isDivision ? n : nullptr;
    }

    bool byDifference(ir::Node* root)
    {
        auto const before = nodes;
        auto fail = [&] {
            nodes = before;
            return false;
        };
        ir::Node* n = nextOf(g_, root);
        if (ir::Node* turned = inverse(root)) {
            nodes.push_back(turned);
            n = nextOf(g_, turned);
            if (!is(n, Operation::kProd) || !isDifference(otherInput(n, turned->outputs[0])))
                return fail();
        } else if (!is(n, Operation::kDiv) || n->inputs[1] != root->outputs[0] || !isDifference(n->inputs[0])) {
            return fail();
        }
        nodes.push_back(n);
        return finish();
    }

    // What follows the last of the nodes.
    bool finish()
    {
        ir::Node* n = nodes.back();
        takeCast(n);
        takeWeights(n);
        takeCast(n);
        throughReshapes(n);
        takeActivation(n);
        return true;
    }

    void takeCast(ir::Node*& n)
    {
        if (ir::Node* next = nextOf(g_, n); isCast(next, DataType::kFloat, DataType::kHalf))
            nodes.push_back(n = next);
    }

    // A constant with a number for each position in some dimensions.
    bool takesWeights(ir::Value const& v, int64_t& mask) const
    {
        if (!v.isConstant() || !isFloating(v.type) || v.rank() != x->rank())
            return false;
        mask = 0;
        int64_t ones = 0;
        for (int i = 0; i < v.rank(); ++i) {
            if (!v.shape[size_t(i)].is(1) && !(v.shape[size_t(i)] == x->shape[size_t(i)]))
                return false;
            (x->shape[size_t(i)].is(1) ? ones : mask) |=
                v.shape[size_t(i)] == x->shape[size_t(i)] ? int64_t(1) << i : 0;
        }
        mask = mask == 0 ? ones & -ones : mask; // of the only channel
        ops::layer_norm::Attrs a;
        NormSets sets = sets_;
        sets.weighted = mask;
        if (mask == 0 || ((gamma || beta) && mask != sets_.weighted))
            return false;
        if (setAttributes(a, sets, x->shape))
            return true;
        ir::Node const* in = reshapeOf(*x); // of channels that are two dimensions
        auto const lifted = in ? throughReshape(sets, in->inputs[0]->shape, x->shape) : std::nullopt;
        return lifted && setAttributes(a, *lifted, in->inputs[0]->shape);
    }

    bool takeWeight(ir::Node*& n, bool sum)
    {
        ir::Node* next = nextOf(g_, n);
        if (!is(next, sum ? Operation::kSum : Operation::kProd))
            return false;
        ir::Value* v = otherInput(next, n->outputs[0]);
        int64_t mask = 0;
        if (!takesWeights(*v, mask))
            return false;
        sets_.weighted = mask;
        (sum ? beta : gamma) = v;
        nodes.push_back(n = next);
        return true;
    }

    void takeWeights(ir::Node*& n)
    {
        if (!gamma && !beta)
            takeWeight(n, false);
        if (!beta)
            takeWeight(n, true);
    }

    // Whether the reshape `out` gives `shape`. One that gives another, as what followed has become part of it, is cut in two.
    bool backTo(ir::Shape const& shape, ir::Node*& out)
    {
        if (out->outputs[0]->shape == shape)
            return true;
        auto const back = reshapeDims(g_, out->inputs[0]->shape, shape),
                   onward = reshapeDims(g_, shape, out->outputs[0]->shape);
        if (!back || !onward || hasWish(*out) || out->inputs.size() > 1)
            return false;
        auto const first = addReshape(g_, out->inputs[0], shape, g_.positionOf(out));
        if (!first.ok() || !*first)
            return false;
        auto& a = out->attrsAs<ops::shuffle::Attrs>();
        a.reshape = onward->dims;
        a.zeroIsPlaceholder = onward->placeholder;
        out->inputs[0] = *first;
        out = (*first)->producer;
        return true;
    }

    // x comes out of a reshape and its result goes back through another: the norm is one of what is reshaped.
    void throughReshapes(ir::Node*& n)
    {
        ir::Node *in = reshapeOf(*x), *cast = in == x->producer ? nullptr : x->producer;
        ir::Node* out = nextOf(g_, n);
        if (!in || !isReshape(out))
            return;
        auto const lifted = throughReshape(sets_, in->inputs[0]->shape, x->shape);
        ops::layer_norm::Attrs a;
        if (!lifted || !setAttributes(a, *lifted, in->inputs[0]->shape))
            return;
        auto const isInside = [&](ir::Value const* v) {
            auto const list = readersOf(g_, v);
            return !g_.isOutput(v) && std::ranges::all_of(list, [&](ir::Node* reader) {
                return reader == cast || contains(nodes, reader);
            });
        };
        if (!isInside(in->outputs[0]) || (cast && !isInside(cast->outputs[0])) || !backTo(in->inputs[0]->shape, out))
            return;
        nodes.insert(nodes.end(), {in, out});
        if (cast)
            nodes.push_back(cast);
        sets_ = *lifted;
        x = in->inputs[0];
        n = out;
        takeCast(n);
        if (!gamma && !beta)
            takeWeights(n);
        takeCast(n);
    }

    void takeActivation(ir::Node* n)
    {
        if (auto const found = matchActivation(g_, n->outputs[0], refit_)) {
            attrs.activation = found->activation;
            nodes.insert(nodes.end(), found->nodes.begin(), found->nodes.end());
        }
    }

    // r = 1 / root * gamma;  x r + (beta - mean r), x r - mean r, (x - mean) r, or x r where there is no mean; gamma may be
    // missing.
    bool byFactor(ir::Node* root)
    {
        ir::Node* turned = inverse(root);
        if (!turned)
            return false;
        ir::Node* factor = turned;
        int64_t mask = 0;
        if (ir::Node* next = nextOf(g_, turned);
            is(next, Operation::kProd) && takesWeights(*otherInput(next, turned->outputs[0]), mask)) {
            gamma = otherInput(next, turned->outputs[0]);
            sets_.weighted = mask;
            factor = next;
        }
        ir::Value* r = factor->outputs[0];
        auto const users = readersOf(g_, r);
        auto take = [&](std::initializer_list<ir::Node*> more) {
            nodes.push_back(turned);
            if (factor != turned)
                nodes.push_back(factor);
            nodes.insert(nodes.end(), more);
            return finish();
        };
        if (users.size() == 1)
            return is(users[0], Operation::kProd) && isDifference(otherInput(users[0], r)) && take({users[0]});
        for (size_t i = 0; users.size() == 2 && i < 2; ++i) {
            ir::Node *scaled = users[i], *shift = users[1 - i];
            if (!is(scaled, Operation::kProd) || otherInput(scaled, r) != x || !is(shift, Operation::kProd) ||
                otherInput(shift, r) != mean_->outputs[0])
                continue;
            ir::Node *difference = nextOf(g_, shift), *sum = nextOf(g_, scaled);
            if (!is(difference, Operation::kSub) || difference->inputs[1] != shift->outputs[0])
                continue;
            if (difference == sum && difference->inputs[0] == scaled->outputs[0])
                return take({scaled, shift, difference});
            if (!is(sum, Operation::kSum) || nextOf(g_, difference) != sum ||
                !takesWeights(*difference->inputs[0], mask))
                continue;
            beta = difference->inputs[0];
            sets_.weighted = mask;
            return take({scaled, shift, difference, sum});
        }
        return false;
    }

    ir::Graph& g_;
    recipe::Recipes const* refit_;
    bool centered_ = true;
    NormSets sets_;
    ir::Node* mean_ = nullptr;
};

// Gamma or beta in the node's type; null when that would change its numbers, or a refit could.
ir::Value* weightVector(ir::Graph& g, ir::Value& row, DataType type, PassContext const& ctx)
{
    ir::Value* v = asVector(g, row);
    if (row.type == type)
        return v;
    if (ctx.recipes && ctx.recipes->reaches(row))
        return nullptr;
    TensorRef const from = constantOf(v);
    Tensor to(type, from.dims);
    for (int64_t i = 0; i < from.count(); ++i) {
        to.ref().set(i, from.get(i));
        if (to.ref().get(i) != from.get(i))
            return nullptr;
    }
    return constantWith(g, row, type, from.dims, Blob::copy(to.data(), size_t(to.ref().sizeBytes())));
}

// With the conversions on both sides, or between them.
Result<bool> fuse(ir::Graph& g, NormPattern& m, PassContext const& ctx)
{
    sortNodes(g, m.nodes);
    bool const ends = isCast(m.nodes.back(), DataType::kFloat, DataType::kHalf);
    for (bool outside : {true, false}) {
        if (!outside && ends)
            m.nodes.pop_back();
        else if (!outside)
            break;
        ir::Value const& y = *m.nodes.back()->outputs[0];
        ir::Value* x = m.x;
        if (isNarrowFloat(y.type) && isCast(x->producer, y.type, DataType::kFloat))
            x = x->producer->inputs[0];
        if (!canFuse(g, m.nodes) || y.type != x->type || !(y.shape == x->shape))
            continue;
        std::vector<FusedInput> inputs{{x, m.x}};
        for (ir::Value* row : {m.gamma, m.beta})
            if (row)
                inputs.push_back({weightVector(g, *row, x->type, ctx), row});
        if (std::ranges::any_of(inputs, [](FusedInput const& in) { return !in.value; }))
            continue;
        m.attrs.hasGamma = m.gamma != nullptr;
        m.attrs.hasBeta = m.beta != nullptr;
        ir::Node* cast = x != m.x ? m.x->producer : nullptr;
        TW_ASSIGN(ir::Node * n, fuseNodes(g, m.nodes, ops::layer_norm::def(), m.attrs.clone(), inputs));
        if (n && cast && g.useCount(cast->outputs[0]) == 0)
            g.eraseNode(cast);
        return n != nullptr;
    }
    return false;
}

} // namespace

Result<bool> fuseLayerNorm(ir::Graph& g, PassContext const& ctx)
{
    return rewriteEach(g, isRoot, [&](ir::Node& root) {
        NormPattern m(g, ctx.recipes);
        return m.from(&root) ? fuse(g, m, ctx) : Result<bool>(false);
    });
}

} // namespace tw::passes
