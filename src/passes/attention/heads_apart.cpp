// SPDX-License-Identifier: Apache-2.0
// What is computed of sequences and heads as one dimension, of sequences and heads as they are:
//   [B,H,M,K] -> [B H,M,K];  y [B H,M,N] of such tensors, by products, sums, a softmax;  [B H,M,N] -> [B,H,M,N]
//     ->  y [B,H,M,N] of the tensors as they were
// Exporters write the first for torch.bmm and torch.baddbmm (BLOOM, XGLM, OPT and Bart of some years). With batches and rows that only a run
// tells the reshapes read their sizes, so that nobody can look through them: fuse_attention finds no heads, caches are read as something
// else. Expects Form::kImported. Stands with the passes that run until nothing changes, behind simplify_shapes, which has made
// attributes of sizes that can be said. Leaves alone: reshapes that say their sizes by attributes, results that others read, wishes of the user.
#include <map>
#include <ranges>

#include "ops/matrix_multiply/op.h"
#include "ops/select/op.h"
#include "ops/shuffle/op.h"
#include "ops/slice/op.h"
#include "ops/softmax/op.h"
#include "passes/attention/attention.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using ir::Dim, ir::Shape, ir::Value;

// What `v` repeats for all sequences, [heads,M,N] -> [B heads,M,N]; null: it is something else.
Value* repeatedBy(Value const* v, Dim const& heads)
{
    ir::Node const* const n = v->producer;
    if (!n || n->op != &ops::slice::def() || n->attrsAs<ops::slice::Attrs>().mode != ops::slice::Mode::kWrap)
        return nullptr;
    auto const& a = n->attrsAs<ops::slice::Attrs>();
    Shape const &from = n->inputs[0]->shape, &to = v->shape;
    auto const areAll = [&](size_t input, std::vector<int64_t> const& attribute, int64_t wanted) {
        if (!hasInput(*n, input))
            return std::ranges::all_of(attribute, [&](int64_t i) { return i == wanted; });
        auto const& content = n->inputs[input]->content;
        return content && std::ranges::all_of(*content, [&](Dim const& d) { return d.is(wanted); });
    };
    bool const isWhole = from.size() == 3 && from[0] == heads && from[1] == to[1] && from[2] == to[2];
    return isWhole && areAll(1, a.start, 0) && areAll(3, a.stride, 1) ? n->inputs[0] : nullptr;
}

// The shuffle of four dimensions that makes `v` with the first two as one, and reads its sizes; null: none.
ir::Node const* joinOf(Value const* v)
{
    ir::Node const* const n = v ? v->producer : nullptr;
    if (!n || n->op != &ops::shuffle::def() || !hasInput(*n, 1) || n->inputs[0]->rank() != 4 || v->rank() != 3)
        return nullptr;
    auto const& a = n->attrsAs<ops::shuffle::Attrs>();
    bool const staysInFront = a.secondTranspose.empty() || a.secondTranspose[0] == 0;
    return staysInFront && joinsHeads(ir::permuted(n->inputs[0]->shape, a.firstTranspose), beforeTranspose(*n))
               ? n
               : nullptr;
}

bool isKnown(ir::Node const& n)
{
    if (n.outputs.size() != 1 || n.outputs[0]->rank() != 3 || !n.regions.empty() || hasWish(n))
        return false;
    if (n.op == &ops::softmax::def())
        return n.attrsAs<ops::softmax::Attrs>().axis > 0;
    return ops::matrix_multiply::isBareProduct(n) || n.op == &ops::select::def() || n.op == &ops::elementwise::def() ||
           n.op == &ops::unary::def() || isCast(&n);
}

class Apart
{
public:
    explicit Apart(ir::Graph& g) : g_(g) {}

    // From `first`, which reads what was joined, to the reshape that takes it apart again.
    bool from(ir::Node* first)
    {
        for (Value const* v : first->inputs)
            if (ir::Node const* const n = joinOf(v)) {
                Shape const four = ir::permuted(n->inputs[0]->shape, n->attrsAs<ops::shuffle::Attrs>().firstTranspose);
                batch_ = four[0];
                heads_ = four[1];
                break;
            }
        for (ir::Node* n = first; n; n = nextOf(g_, n)) {
            if (isSplit(*n)) {
                split_ = n;
                return !chain_.empty();
            }
            Shape const& y = n->outputs[0]->shape;
            if (!isKnown(*n) || !(y[0] == batch_ * heads_))
                return false;
            for (Value const* v : n->inputs)
                if (!v || v->rank() != 3)
                    return false;
            chain_.push_back(n);
        }
        return false;
    }

    Result<bool> rewrite()
    {
        for (ir::Node* n : chain_) {
            std::vector<Value*> inputs;
            for (Value* v : n->inputs) {
                TW_ASSIGN(Value * w, fourOf(v, g_.positionOf(n)));
                if (!w)
                    return undone();
                inputs.push_back(w);
            }
            auto attrs = n->attrs->clone();
            if (n->op == &ops::softmax::def())
                ++static_cast<ops::softmax::Attrs&>(*attrs).axis;
            TW_ASSIGN(ir::Node * m,
                      g_.addNode(*n->op, std::move(attrs), std::move(inputs), n->name, {}, g_.positionOf(n)));
            added_.push_back(m);
            takePlaceOf(*m, *n);
            Shape const& y = n->outputs[0]->shape;
            if (!(m->outputs[0]->shape == Shape{batch_, heads_, y[1], y[2]}))
                return undone();
            made_[n->outputs[0]] = m->outputs[0];
        }
        Value* y = made_.at(split_->inputs[0]);
        if (auto const& order = split_->attrsAs<ops::shuffle::Attrs>().secondTranspose; !order.empty())
            TW_SET(y, moved(y, order, {}, *split_, g_.positionOf(split_)));
        if (!replaceValue(g_, split_->outputs[0], y))
            return undone();
        g_.eraseNode(split_);
        for (ir::Node* n : chain_ | std::views::reverse)
            g_.eraseNode(n);
        return true;
    }

private:
    ir::Graph& g_;
    Dim batch_, heads_;
    std::vector<ir::Node*> chain_, added_;
    ir::Node* split_ = nullptr;
    std::map<Value const*, Value*> made_;

    bool isSplit(ir::Node const& n) const
    {
        if (n.op != &ops::shuffle::def() || n.outputs[0]->rank() != 4 || n.inputs[0]->rank() != 3 || hasWish(n) ||
            !n.attrsAs<ops::shuffle::Attrs>().firstTranspose.empty())
            return false;
        Shape const four = beforeTranspose(n);
        return joinsHeads(four, n.inputs[0]->shape) && four[0] == batch_ && four[1] == heads_;
    }

    bool undone()
    {
        for (ir::Node* n : added_ | std::views::reverse)
            g_.eraseNode(n);
        return false;
    }

    Result<Value*> moved(Value* v, std::vector<int64_t> first, std::vector<int64_t> second, ir::Node const& like,
                         int at)
    {
        ops::shuffle::Attrs a;
        a.firstTranspose = std::move(first);
        a.secondTranspose = std::move(second);
        TW_ASSIGN(ir::Node * n, g_.addNode(ops::shuffle::def(), a.clone(), {v}, like.name, {}, at));
        takePlaceOf(*n, like);
        added_.push_back(n);
        return n->outputs[0];
    }

    Result<Value*> reshaped(Value* v, Shape const& shape, int at)
    {
        TW_ASSIGN(Value * y, addReshape(g_, v, shape, at));
        if (y)
            added_.push_back(y->producer);
        return y;
    }

    // An operand with sequences and heads as they are; null: there is no way to say it.
    Result<Value*> fourOf(Value* v, int at)
    {
        if (auto const it = made_.find(v); it != made_.end())
            return it->second;
        if (ir::Node const* const n = joinOf(v)) {
            auto const& a = n->attrsAs<ops::shuffle::Attrs>();
            Shape const four = ir::permuted(n->inputs[0]->shape, a.firstTranspose);
            if (!(four[0] == batch_) || !(four[1] == heads_))
                return static_cast<Value*>(nullptr);
            if (a.firstTranspose.empty() && a.secondTranspose.empty())
                return n->inputs[0];
            std::vector<int64_t> second{0};
            for (int64_t d : a.secondTranspose)
                second.push_back(d + 1);
            return moved(n->inputs[0], a.firstTranspose, a.secondTranspose.empty() ? std::vector<int64_t>() : second,
                         *n, at);
        }
        bool const isOne = v->shape[0].is(1);
        if (v->isConstant() && isOne)
            return withRank(g_, *v, 4);
        // What all heads or sequences have alike, and masks of each, perhaps in front of a reshape that joined them.
        Shape const wanted{isOne ? Dim(1) : batch_, isOne ? Dim(1) : heads_, v->shape[1], v->shape[2]};
        if (Value* const once = repeatedBy(v, heads_))
            return reshaped(once, {1, heads_, wanted[2], wanted[3]}, at);
        TW_ASSIGN(Value * y, reshaped(v, wanted, at));
        return y || !isReshape(v->producer) ? y : reshaped(v->producer->inputs[0], wanted, at);
    }
};

} // namespace

Result<bool> headsApart(ir::Graph& g, PassContext const&)
{
    auto const readsJoined = [](ir::Node const& n) {
        return isKnown(n) && std::ranges::any_of(n.inputs, [](Value const* v) { return joinOf(v) != nullptr; });
    };
    return rewriteEach(g, readsJoined, [&](ir::Node& n) -> Result<bool> {
        Apart apart(g);
        return apart.from(&n) ? apart.rewrite() : Result<bool>(false);
    });
}

} // namespace tw::passes
