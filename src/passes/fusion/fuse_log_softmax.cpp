// SPDX-License-Identifier: Apache-2.0
// Makes one softmax that gives logarithms of
//   log(softmax(x))
//   x - log(sum of exp(x)), x - m - log(sum of exp(x - m)), m one number for each slice
// and one softplus, -log(1 + exp(-x)), of log(sigmoid(x)), as exporters write logsigmoid.
// The logarithm is finite where the softmax or the sigmoid itself is too small for its type. There is no body: the op's
// reference knows the logarithm.
// Expects Form::kCanonical. Stands after fuse_reduce, which makes one node of the logarithm of the sum, and before
// fuse_pointwise. Leaves alone: a softmax, sigmoid or sum that others read too, sums over several axes, wishes of the user that
// differ.
#include <algorithm>
#include <bit>

#include "ops/activation/op.h"
#include "ops/elementwise/op.h"
#include "ops/reduce/op.h"
#include "ops/softmax/op.h"
#include "ops/unary/op.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

bool haveEqualInputs(ir::Node const* a, ir::Node const* b)
{
    return is(a, ops::elementwise::Operation::kSub) && is(b, ops::elementwise::Operation::kSub) &&
           a->inputs == b->inputs;
}

// What will be one node.
struct LogSoftmaxChain
{
    std::vector<ir::Node*> nodes; // in order of execution, the last one makes the result; empty: none
    ir::Value* x = nullptr;
    ops::softmax::Attrs attrs;
};

LogSoftmaxChain logOfSoftmax(ir::Graph const& g, ir::Node* log)
{
    ir::Node* const softmax = onlyProducer(g, log->inputs[0]);
    if (!is(log, ops::unary::Operation::kLog) || !softmax || softmax->op != &ops::softmax::def() ||
        softmax->attrsAs<ops::softmax::Attrs>().log || !canJoin(*softmax, *log))
        return {};
    LogSoftmaxChain c{{softmax, log}, softmax->inputs[0], softmax->attrsAs<ops::softmax::Attrs>()};
    return c;
}

// u - log(sum of exp(u)) along one axis.
LogSoftmaxChain lessLogSumExp(ir::Graph const& g, ir::Node* last)
{
    if (!is(last, ops::elementwise::Operation::kSub))
        return {};
    ir::Value *u = last->inputs[0], *y = last->outputs[0];
    ir::Node* const sum = onlyProducer(g, last->inputs[1]);
    if (!sum || sum->op != &ops::reduce::def() || !(u->shape == y->shape) || !canJoin(*sum, *last))
        return {};
    auto const& a = sum->attrsAs<ops::reduce::Attrs>();
    ir::Value* const summed = sum->inputs[0];
    if (!a.isLogSumExp() || !a.keepDims || !std::has_single_bit(uint64_t(a.axes)) ||
        (summed != u && !haveEqualInputs(summed->producer, u->producer)))
        return {};
    LogSoftmaxChain c{{sum, last}, u, {}};
    c.attrs.axis = std::countr_zero(uint64_t(a.axes));
    // What is taken off before changes nothing.
    ir::Node* const before = u->producer;
    if (is(before, ops::elementwise::Operation::kSub) && before->inputs[0]->shape == u->shape &&
        before->inputs[1]->rank() == u->rank() && before->inputs[1]->shape[size_t(c.attrs.axis)].is(1) &&
        canJoin(*before, *last)) {
        c.x = before->inputs[0];
        for (ir::Node* n : {before, summed->producer})
            if (g.useCount(n->outputs[0]) == 1 + int(summed == u) && c.nodes[0] != n)
                c.nodes.insert(c.nodes.begin(), n);
    }
    std::ranges::sort(c.nodes, [&](auto* m, auto* n) { return g.positionOf(m) < g.positionOf(n); });
    return c;
}

// Whether a sigmoid in front of `log` became one node with it.
Result<bool> fuseSigmoid(ir::Graph& g, ir::Node* log, Log& to)
{
    using Attrs = ops::activation::Attrs;
    ir::Node* const sigmoid = is(log, ops::unary::Operation::kLog) ? onlyProducer(g, log->inputs[0]) : nullptr;
    if (!sigmoid || sigmoid->op != &ops::activation::def() ||
        sigmoid->attrsAs<Attrs>().kind != ops::activation::Kind::kSigmoid || !canJoin(*sigmoid, *log))
        return false;
    to.info("fused {}", namesOf({sigmoid, log}));
    Attrs const softplus(ops::activation::Kind::kSoftplus, -1, -1);
    TW_ASSIGN(ir::Node * fused, g.addNode(ops::activation::def(), softplus.clone(), {sigmoid->inputs[0]}, sigmoid->name,
                                          {}, g.positionOf(log)));
    replaceNodes(g, {sigmoid, log}, *fused);
    return true;
}

Result<void> fuse(ir::Graph& g, LogSoftmaxChain& c)
{
    ir::Node* const last = c.nodes.back();
    c.attrs.log = true;
    TW_ASSIGN(ir::Node * fused,
              g.addNode(ops::softmax::def(), c.attrs.clone(), {c.x}, c.nodes[0]->name, {}, g.positionOf(last)));
    replaceNodes(g, c.nodes, *fused);
    return {};
}

} // namespace

Result<bool> fuseLogSoftmax(ir::Graph& g, PassContext const& ctx)
{
    auto const isLast = [](ir::Node const& n) {
        return (is(&n, ops::unary::Operation::kLog) || is(&n, ops::elementwise::Operation::kSub)) &&
               isFloating(n.outputs[0]->type);
    };
    auto const fuseBefore = [&](ir::Node& last) -> Result<bool> {
        TW_ASSIGN(bool const isDone, fuseSigmoid(g, &last, ctx.log));
        if (isDone)
            return true;
        LogSoftmaxChain c = logOfSoftmax(g, &last);
        if (c.nodes.empty())
            c = lessLogSumExp(g, &last);
        if (c.nodes.empty())
            return false;
        ctx.log.info("fused {}", namesOf(c.nodes));
        TW_TRY(fuse(g, c));
        return true;
    };
    TW_ASSIGN(bool const changed, rewriteEach(g, isLast, fuseBefore));
    if (changed)
        TW_TRY(removeDead(g, ctx)); // maxima that nobody takes off any more
    return changed;
}

} // namespace tw::passes
