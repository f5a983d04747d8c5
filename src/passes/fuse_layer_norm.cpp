// SPDX-License-Identifier: Apache-2.0
// Makes one layer_norm of the nodes that exporters write for it:
//   m = mean(x), d = x - m, v = mean(d^2), y = d / sqrt(v + e) * gamma + beta          (PyTorch)
//   m = mean(x), v = mean((x - m)^2), r = 1 / sqrt(v + e) * gamma, y = x r + (beta - m r)   (TensorFlow)
// d^2 may be a power or a product, 1 / sqrt a division or a reciprocal, d may be computed twice; gamma and beta may be
// missing. A network in FP16 may compute this in f32 between two conversions, with gamma and beta before or behind the
// second, and e may have become nothing; the node then reads and makes f16. Means are over the last dimensions, which
// are known numbers; gamma and beta are constants of their shape. Expects Form::kCanonical. Stands in front of the
// fusions that would take single nodes of the pattern. Leaves alone: values inside that others read, wishes of the user
// that differ.
#include <algorithm>
#include <cmath>

#include "ops/elementwise/op.h"
#include "ops/identity/op.h"
#include "ops/layer_norm/op.h"
#include "ops/reduce/op.h"
#include "ops/unary/op.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using Operation = ops::elementwise::Operation;

bool is(ir::Node const* n, Operation operation)
{
    return n && n->op == &ops::elementwise::def() && n->attrsAs<ops::elementwise::Attrs>().operation == operation;
}

bool is(ir::Node const* n, ops::unary::Operation operation)
{
    return n && n->op == &ops::unary::def() && n->attrsAs<ops::unary::Attrs>().operation == operation;
}

// The conversion from f32 back to f16, or from f16 to f32.
bool isCast(ir::Node const* n, DataType from, DataType to)
{
    return n && n->op == &ops::identity::def() && n->inputs[0]->type == from && n->outputs[0]->type == to;
}

// The other operand of a commutative node.
ir::Value* otherInput(ir::Node const* n, ir::Value const* v)
{
    return n->inputs[n->inputs[0] == v ? 1 : 0];
}

class Match
{
public:
    Match(ir::Graph& g, bool refittable) : g_(g), refittable_(refittable) {}

    std::vector<ir::Node*> nodes;
    ir::Value* x = nullptr;
    ir::Value *gamma = nullptr, *beta = nullptr; // constants, null: none
    ops::layer_norm::Attrs attrs;

    // `root` is a square root.
    bool from(ir::Node* root) { return variance(root) && (byDifference(root) || byFactor(root)); }

private:
    ir::Graph& g_;
    bool refittable_;
    ir::Node* mean_ = nullptr;
    std::vector<ir::Node*> differences_; // x - mean

    std::vector<ir::Node*> readers(ir::Value const* v) const
    {
        std::vector<ir::Node*> list;
        for (auto const& n : g_.nodes)
            if (std::find(n->inputs.begin(), n->inputs.end(), v) != n->inputs.end())
                list.push_back(n.get());
        return list;
    }
    ir::Node* onlyReader(ir::Node const* n) const
    {
        auto const list = readers(n->outputs[0]);
        return list.size() == 1 && !g_.isOutput(n->outputs[0]) ? list[0] : nullptr;
    }

    // A mean over the last dimensions that keeps them as ones.
    bool isMean(ir::Node const* n)
    {
        if (!n || n->op != &ops::reduce::def())
            return false;
        auto const& a = n->attrsAs<ops::reduce::Attrs>();
        int const rank = n->inputs[0]->rank();
        int axis = rank;
        while (axis > 0 && a.has(axis - 1))
            --axis;
        if (a.kind != ops::reduce::Kind::kAvg || !a.keepDims || axis == rank ||
            (a.axes >> axis) + 1 != 1ll << (rank - axis) || (a.axes & ((1ll << axis) - 1)) != 0)
            return false;
        for (int i = axis; i < rank; ++i)
            if (!n->inputs[0]->shape[size_t(i)].isConst())
                return false;
        attrs.axis = axis;
        return true;
    }

    // sqrt(mean((x - mean(x))^2) + e)
    bool variance(ir::Node* root)
    {
        ir::Node* sum = root->inputs[0]->producer;
        ir::Node* average = sum;
        attrs.epsilon = 0; // 1e-12 in FP16, whose sum is no node any more
        if (is(sum, Operation::kSum)) {
            int const constantAt = sum->inputs[1]->isConstant() ? 1 : 0;
            auto const epsilon = numberOf(sum->inputs[size_t(constantAt)], refittable_);
            if (!epsilon || !(*epsilon >= 0) || !std::isfinite(*epsilon))
                return false;
            attrs.epsilon = *epsilon;
            average = sum->inputs[size_t(1 - constantAt)]->producer;
            nodes.push_back(sum);
        }
        if (!isMean(average))
            return false;
        int64_t const axis = attrs.axis;
        ir::Node* square = average->inputs[0]->producer;
        bool const product = is(square, Operation::kProd) && square->inputs[0] == square->inputs[1];
        bool const power = is(square, Operation::kPow) && numberOf(square->inputs[1], refittable_) == 2.0;
        if (!product && !power)
            return false;
        ir::Node* difference = square->inputs[0]->producer;
        if (!is(difference, Operation::kSub))
            return false;
        x = difference->inputs[0];
        mean_ = difference->inputs[1]->producer;
        if (!isMean(mean_) || mean_->inputs[0] != x || attrs.axis != axis || !isFloating(x->type))
            return false;
        differences_ = {difference};
        nodes.insert(nodes.end(), {mean_, difference, square, average, root});
        return true;
    }

    bool isDifference(ir::Value const* v)
    {
        ir::Node* n = v->producer;
        if (!is(n, Operation::kSub) || n->inputs[0] != x)
            return false;
        if (n->inputs[1] != mean_->outputs[0]) {
            ir::Node* again = n->inputs[1]->producer; // another mean of the same
            if (!isMean(again) || again->inputs[0] != x ||
                again->attrsAs<ops::reduce::Attrs>().axes != mean_->attrsAs<ops::reduce::Attrs>().axes)
                return false;
            nodes.push_back(again);
        }
        nodes.push_back(n);
        return true;
    }

    // A constant whose elements are those of one row.
    bool isRow(ir::Value const* v) const
    {
        if (!v->isConstant() || !isFloating(v->type) || v->rank() != x->rank())
            return false;
        for (int i = 0; i < v->rank(); ++i)
            if (!(i < attrs.axis ? v->shape[size_t(i)].is(1) : v->shape[size_t(i)] == x->shape[size_t(i)]))
                return false;
        return true;
    }

    // 1 / root: a reciprocal or a division of a constant one; null when `root` is not turned over.
    ir::Node* inverse(ir::Node* root) const
    {
        ir::Node* n = onlyReader(root);
        if (is(n, ops::unary::Operation::kRecip) ||
            (is(n, Operation::kDiv) && n->inputs[1] == root->outputs[0] && numberOf(n->inputs[0], refittable_) == 1.0))
            return n;
        return nullptr;
    }

    bool byDifference(ir::Node* root)
    {
        auto const before = nodes;
        ir::Node* n = onlyReader(root);
        if (ir::Node* turned = inverse(root)) {
            nodes.push_back(turned);
            n = onlyReader(turned);
            if (!is(n, Operation::kProd) || !isDifference(otherInput(n, turned->outputs[0]))) {
                nodes = before;
                return false;
            }
        } else if (!is(n, Operation::kDiv) || n->inputs[1] != root->outputs[0] || !isDifference(n->inputs[0])) {
            nodes = before;
            return false;
        }
        nodes.push_back(n);
        takeGammaAndBeta(n);
        return true;
    }

    void takeGammaAndBeta(ir::Node* n)
    {
        auto step = [&](ir::Node* next) {
            nodes.push_back(next);
            n = next;
        };
        auto takeCast = [&] {
            if (ir::Node* next = onlyReader(n); isCast(next, DataType::kFloat, DataType::kHalf))
                step(next);
        };
        takeCast();
        if (ir::Node* next = onlyReader(n); is(next, Operation::kProd) && isRow(otherInput(next, n->outputs[0]))) {
            gamma = otherInput(next, n->outputs[0]);
            step(next);
        }
        if (ir::Node* next = onlyReader(n); is(next, Operation::kSum) && isRow(otherInput(next, n->outputs[0]))) {
            beta = otherInput(next, n->outputs[0]);
            step(next);
        }
        takeCast();
    }

    // r = 1 / root * gamma;  x * r + (beta - mean * r)
    bool byFactor(ir::Node* root)
    {
        ir::Node* turned = inverse(root);
        ir::Node* factor = turned ? onlyReader(turned) : nullptr;
        if (!is(factor, Operation::kProd) || !isRow(otherInput(factor, turned->outputs[0])))
            return false;
        gamma = otherInput(factor, turned->outputs[0]);
        ir::Value* r = factor->outputs[0];
        auto const users = readers(r);
        if (users.size() != 2)
            return false;
        for (size_t i = 0; i < 2; ++i) {
            ir::Node *scaled = users[i], *shift = users[1 - i];
            if (!is(scaled, Operation::kProd) || otherInput(scaled, r) != x || !is(shift, Operation::kProd) ||
                otherInput(shift, r) != mean_->outputs[0])
                continue;
            ir::Node *difference = onlyReader(shift), *sum = onlyReader(scaled);
            if (!is(difference, Operation::kSub) || difference->inputs[1] != shift->outputs[0] ||
                !isRow(difference->inputs[0]) || !is(sum, Operation::kSum) || onlyReader(difference) != sum)
                continue;
            beta = difference->inputs[0];
            nodes.insert(nodes.end(), {turned, factor, scaled, shift, difference, sum});
            return true;
        }
        return false;
    }
};

// A row in the node's type; null when that would change its numbers.
ir::Value* rowOf(ir::Graph& g, ir::Value& row, DataType type)
{
    ir::Value* v = asVector(g, row);
    if (row.type == type)
        return v;
    TensorRef const from = constantOf(v);
    Tensor to(type, from.dims);
    for (int64_t i = 0; i < from.count(); ++i) {
        to.ref().set(i, from.get(i));
        if (to.ref().get(i) != from.get(i))
            return nullptr;
    }
    auto c = std::make_shared<ir::Constant>(*row.constant);
    c->data = Blob::copy(to.data(), size_t(to.ref().sizeBytes()));
    return g.addConstant(row.name, type, from.dims, std::move(c));
}

// With the conversions on both sides, or between them.
Result<bool> fuse(ir::Graph& g, Match& m)
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
        if (y.type == DataType::kHalf && isCast(x->producer, DataType::kHalf, DataType::kFloat))
            x = x->producer->inputs[0];
        if (!canFuse(g, m.nodes) || y.type != x->type || !(y.shape == x->shape))
            continue;
        std::vector<FusedInput> inputs{{x, m.x}};
        for (ir::Value* row : {m.gamma, m.beta})
            if (row)
                inputs.push_back({rowOf(g, *row, x->type), row});
        if (std::any_of(inputs.begin(), inputs.end(), [](FusedInput const& in) { return !in.value; }))
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
    std::vector<ir::Node*> roots;
    for (auto const& n : g.nodes)
        if (is(n.get(), ops::unary::Operation::kSqrt))
            roots.push_back(n.get());
    bool changed = false;
    for (ir::Node* root : roots) {
        Match m(g, ctx.refittable);
        if (!m.from(root))
            continue;
        TW_ASSIGN(bool const fused, fuse(g, m));
        changed = changed || fused;
    }
    if (changed)
        g.eraseUnusedValues();
    return changed;
}

} // namespace tw::passes
