// SPDX-License-Identifier: Apache-2.0
#include "passes/norm_pattern.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/activation/op.h"
#include "ops/elementwise/op.h"
#include "ops/identity/op.h"
#include "ops/reduce/op.h"
#include "ops/shuffle/op.h"
#include "ops/unary/op.h"
#include "passes/fuse_nodes.h"
#include "passes/match_activation.h"
#include "passes/node_kinds.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using Operation = ops::elementwise::Operation;

// The reshape that makes x, perhaps with a conversion after it; null: none.
ir::Node* reshapeOf(ir::Value const& x)
{
    ir::Node* n = x.producer;
    if (isCast(n, DataType::kHalf, DataType::kFloat))
        n = n->inputs[0]->producer;
    return isReshape(n) ? n : nullptr;
}

} // namespace

bool isCast(ir::Node const* n, DataType from, DataType to)
{
    return n && n->op == &ops::identity::def() && n->inputs[0]->type == from && n->outputs[0]->type == to;
}

bool isRoot(ir::Node const& n)
{
    return is(&n, ops::unary::Operation::kSqrt);
}

// A mean that keeps the dimensions that it is taken over; all of a pattern are over the same.
bool NormPattern::isMean(ir::Node const* n)
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
bool NormPattern::variance(ir::Node* root)
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
bool NormPattern::ofDifference(ir::Node* average, ir::Node* square)
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
bool NormPattern::ofSquares(ir::Node* difference)
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
bool NormPattern::isDifference(ir::Value* v)
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
ir::Node* NormPattern::inverse(ir::Node* root) const
{
    ir::Node* n = nextOf(g_, root);
    bool const isReciprocal = is(n, ops::unary::Operation::kRecip);
    bool const isDivision =
        is(n, Operation::kDiv) && n->inputs[1] == root->outputs[0] && numberOf(n->inputs[0], refit_) == 1.0;
    return isReciprocal || isDivision ? n : nullptr;
}

bool NormPattern::byDifference(ir::Node* root)
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
    takeCast(n);
    takeWeights(n);
    takeCast(n);
    throughReshapes(n);
    takeActivation(n);
    return true;
}

void NormPattern::takeCast(ir::Node*& n)
{
    if (ir::Node* next = nextOf(g_, n); isCast(next, DataType::kFloat, DataType::kHalf))
        nodes.push_back(n = next);
}

// A constant with a number for each position in some dimensions.
bool NormPattern::takesWeights(ir::Value const& v, int64_t& mask) const
{
    if (!v.isConstant() || !isFloating(v.type) || v.rank() != x->rank())
        return false;
    mask = 0;
    int64_t ones = 0;
    for (int i = 0; i < v.rank(); ++i) {
        if (!v.shape[size_t(i)].is(1) && !(v.shape[size_t(i)] == x->shape[size_t(i)]))
            return false;
        (x->shape[size_t(i)].is(1) ? ones : mask) |= v.shape[size_t(i)] == x->shape[size_t(i)] ? int64_t(1) << i : 0;
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

bool NormPattern::takeWeight(ir::Node*& n, bool sum)
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

void NormPattern::takeWeights(ir::Node*& n)
{
    takeWeight(n, false);
    takeWeight(n, true);
}

// x comes out of a reshape and its result goes back through another: the norm is one of what is reshaped.
void NormPattern::throughReshapes(ir::Node*& n)
{
    ir::Node *in = reshapeOf(*x), *cast = in == x->producer ? nullptr : x->producer;
    ir::Node* out = nextOf(g_, n);
    if (!in || !isReshape(out) || !(out->outputs[0]->shape == in->inputs[0]->shape))
        return;
    auto const lifted = throughReshape(sets_, in->inputs[0]->shape, x->shape);
    ops::layer_norm::Attrs a;
    if (!lifted || !setAttributes(a, *lifted, in->inputs[0]->shape))
        return;
    auto const isInside = [&](ir::Value const* v) {
        auto const list = readersOf(g_, v);
        return !g_.isOutput(v) && std::all_of(list.begin(), list.end(), [&](ir::Node* reader) {
            return reader == cast || std::find(nodes.begin(), nodes.end(), reader) != nodes.end();
        });
    };
    if (!isInside(in->outputs[0]) || (cast && !isInside(cast->outputs[0])))
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

void NormPattern::takeActivation(ir::Node* n)
{
    if (auto const found = matchActivation(g_, n->outputs[0], refit_)) {
        attrs.activation = found->activation;
        nodes.insert(nodes.end(), found->nodes.begin(), found->nodes.end());
    }
}

// r = 1 / root * gamma;  x r + (beta - mean r), x r - mean r, (x - mean) r, or x r where there is no mean; gamma may be
// missing.
bool NormPattern::byFactor(ir::Node* root)
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
    auto finish = [&](std::initializer_list<ir::Node*> more) {
        nodes.push_back(turned);
        if (factor != turned)
            nodes.push_back(factor);
        nodes.insert(nodes.end(), more);
        ir::Node* n = nodes.back();
        takeCast(n);
        if (!beta)
            takeWeight(n, true);
        takeCast(n);
        throughReshapes(n);
        takeActivation(n);
        return true;
    };
    if (users.size() == 1)
        return is(users[0], Operation::kProd) && isDifference(otherInput(users[0], r)) && finish({users[0]});
    for (size_t i = 0; users.size() == 2 && i < 2; ++i) {
        ir::Node *scaled = users[i], *shift = users[1 - i];
        if (!is(scaled, Operation::kProd) || otherInput(scaled, r) != x || !is(shift, Operation::kProd) ||
            otherInput(shift, r) != mean_->outputs[0])
            continue;
        ir::Node *difference = nextOf(g_, shift), *sum = nextOf(g_, scaled);
        if (!is(difference, Operation::kSub) || difference->inputs[1] != shift->outputs[0])
            continue;
        if (difference == sum && difference->inputs[0] == scaled->outputs[0])
            return finish({scaled, shift, difference});
        if (!is(sum, Operation::kSum) || nextOf(g_, difference) != sum || !takesWeights(*difference->inputs[0], mask))
            continue;
        beta = difference->inputs[0];
        sets_.weighted = mask;
        return finish({scaled, shift, difference, sum});
    }
    return false;
}

bool NormPattern::from(ir::Node* root)
{
    if (!variance(root))
        return false;
    attrs.rms = !centered_;
    return (byDifference(root) || byFactor(root)) && setAttributes(attrs, sets_, x->shape);
}

namespace {

// What dimension `inner` of the one shape and dimension `outer` of the other have in common.
struct Factor
{
    size_t outer, inner;
    ir::Dim size;
};

// Both shapes as products of the same factors, in order; dimensions of 1 have none.
std::optional<std::vector<Factor>> factorsOf(ir::Shape const& outer, ir::Shape const& inner)
{
    std::vector<Factor> list;
    size_t i = 0, j = 0;
    ir::Dim a = 1, b = 1; // what is left of the two
    auto next = [](ir::Shape const& s, size_t& at, ir::Dim& left) {
        while (left.is(1) && at < s.size())
            left = s[at++];
        return !left.is(1);
    };
    auto isLast = [](ir::Shape const& s, size_t at) {
        for (; at < s.size(); ++at)
            if (!s[at].is(1))
                return false;
        return true;
    };
    for (;;) {
        bool const more = next(outer, i, a), others = next(inner, j, b);
        if (!more || !others)
            return more == others ? std::optional(std::move(list)) : std::nullopt;
        bool const known = a.isConst() && b.isConst() && a.value() > 0 && b.value() > 0;
        auto take = [&](ir::Dim const& size) { list.push_back({i - 1, j - 1, size}); };
        if (a == b) {
            take(a);
            a = b = 1;
        } else if (known && a.value() % b.value() == 0) {
            take(b);
            a = a.value() / b.value();
            b = 1;
        } else if (known && b.value() % a.value() == 0) {
            take(a);
            b = b.value() / a.value();
            a = 1;
        } else if (!known && isLast(inner, j)) { // it holds what is left of the other shape
            for (take(a), a = 1; next(outer, i, a); a = 1)
                take(a);
            return list;
        } else if (!known && isLast(outer, i)) {
            for (take(b), b = 1; next(inner, j, b); b = 1)
                take(b);
            return list;
        } else {
            return std::nullopt;
        }
    }
}

bool has(int64_t mask, size_t dimension)
{
    return mask >> dimension & 1;
}

} // namespace

std::optional<NormSets> throughReshape(NormSets const& sets, ir::Shape const& outer, ir::Shape const& inner)
{
    auto const factors = factorsOf(outer, inner);
    if (!factors || sets.groups != 1)
        return std::nullopt;
    NormSets to;
    for (size_t d = 0; d < outer.size(); ++d) {
        ir::Dim kept = 1;
        bool any = false, normalized = false, weighted = false;
        for (Factor const& f : *factors) {
            if (f.outer != d)
                continue;
            bool const isWeighted = has(sets.weighted, f.inner);
            if (any && isWeighted != weighted)
                return std::nullopt;
            weighted = isWeighted;
            any = true;
            if (has(sets.normalized, f.inner))
                normalized = true;
            else if (normalized)
                return std::nullopt; // groups that are not neighbours
            else
                kept = kept * f.size;
        }
        if (weighted)
            to.weighted |= int64_t(1) << d;
        if (!normalized)
            continue;
        to.normalized |= int64_t(1) << d;
        if (kept.is(1))
            continue;
        if (to.groups != 1 || !kept.isConst())
            return std::nullopt;
        to.groups = kept.value();
        to.channel = int(d);
    }
    if (sets.weighted != 0 && to.weighted == 0)
        return std::nullopt;
    return to;
}

bool setAttributes(ops::layer_norm::Attrs& a, NormSets const& sets, ir::Shape const& x)
{
    int const rank = int(x.size());
    int64_t real = 0; // dimensions of 1 count as what suits
    for (int i = 0; i < rank; ++i)
        real |= x[size_t(i)].is(1) ? 0 : int64_t(1) << i;
    int64_t const weighted = sets.weighted, normalized = sets.normalized;
    if (normalized == 0)
        return false;
    a.axis = __builtin_ctzll(uint64_t(normalized));
    a.kept = ((int64_t(1) << rank) - 1) & ~normalized & ~((int64_t(2) << a.axis) - 1);
    a.groups = sets.groups;
    a.channel = sets.channel;
    if (weighted == 0 || (sets.groups == 1 && weighted == (normalized & real)))
        return true;
    if ((weighted & (weighted - 1)) != 0)
        return false;
    int const channel = __builtin_ctzll(uint64_t(weighted));
    a.channel = channel;
    return sets.groups == 1 || sets.channel == channel;
}

} // namespace tw::passes
