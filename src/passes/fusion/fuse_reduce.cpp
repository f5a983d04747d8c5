// SPDX-License-Identifier: Apache-2.0
// Makes one reduction of a sum, what each element goes through in front of it and what the result goes through behind:
//   |x| -> sum                                L1 norm;  mean and maximum of absolute values likewise
//   x * x or x^2 -> sum -> sqrt               L2 norm, sum of squares; the mean's root
//   sum -> log                                logarithm of a sum
//   exp(x) -> sum -> log                      logarithm of a sum of exponentials, its maximum taken off
//   exp(x - m) -> sum -> log -> + m           the same of x, whatever m is: one number for each sum
// What stands in front of a reduction would else be written and read at the size of x. There is no body: the op's
// reference knows both functions, and is exact where exp(x) is too large for its type.
// Expects Form::kCanonical. Stands after fuse_layer_norm and fuse_attention, which know means of squares and sums of
// exponentials, and before fuse_pointwise, which would take the functions. Leaves alone: values that others read too,
// integers, functions in front of products and minima, wishes of the user that differ.
#include <algorithm>

#include "ops/elementwise/op.h"
#include "ops/reduce/op.h"
#include "ops/unary/op.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using ops::reduce::After;
using ops::reduce::Before;
using Operation = ops::elementwise::Operation;
using Unary = ops::unary::Operation;

// What will be one node.
struct ReduceChain
{
    std::vector<ir::Node*> nodes; // in order of execution
    ir::Value* x = nullptr;
    ops::reduce::Attrs attrs;

    bool takes(ir::Node const* n) const
    {
        return n && std::ranges::all_of(nodes, [&](ir::Node const* m) { return canJoin(*m, *n) && canJoin(*n, *m); });
    }
    void putInFront(ir::Node* n)
    {
        nodes.insert(nodes.begin(), n);
        x = n->inputs[0];
    }
};

// Whether the sum's function in front may be this one.
bool takesBefore(ops::reduce::Kind kind, Before before)
{
    using ops::reduce::Kind;
    return kind == Kind::kSum || kind == Kind::kAvg || (kind == Kind::kMax && before == Before::kAbs);
}

// x - m, m one number for each sum, and the same m added to the logarithm.
void takeDifference(ir::Graph const& g, ReduceChain& c)
{
    ir::Node* difference = onlyProducer(g, c.x);
    ir::Node* const added = nextOf(g, c.nodes.back());
    if (!is(difference, Operation::kSub) || !is(added, Operation::kSum) || !c.takes(difference) || !c.takes(added))
        return;
    ir::Value const *x = difference->inputs[0], *m = difference->inputs[1], *log = c.nodes.back()->outputs[0];
    ir::Value const* other = otherInput(added, log);
    if (other != m && !(isReshape(other->producer) && other->producer->inputs[0] == m))
        return;
    if (!(x->shape == difference->outputs[0]->shape) || !(log->shape == added->outputs[0]->shape) ||
        m->rank() != x->rank())
        return;
    for (int i = 0; i < m->rank(); ++i)
        if (c.attrs.has(i) && !m->shape[size_t(i)].is(1))
            return;
    c.putInFront(difference);
    c.nodes.push_back(added);
}

ReduceChain chainOf(ir::Graph const& g, ir::Node* sum, recipe::Recipes const* refit)
{
    ReduceChain c;
    c.nodes = {sum};
    c.x = sum->inputs[0];
    c.attrs = sum->attrsAs<ops::reduce::Attrs>();
    using ops::reduce::Kind;
    Kind const kind = c.attrs.kind;
    ir::Node* const in = onlyProducer(g, c.x);
    ir::Node* const next = nextOf(g, sum);
    bool const isLog = is(next, Unary::kLog) && kind == Kind::kSum && c.takes(next);
    if (isLog && is(in, Unary::kExp) && c.takes(in)) {
        c.attrs.before = Before::kExp;
        c.attrs.after = After::kLog;
        c.putInFront(in);
        c.nodes.push_back(next);
        takeDifference(g, c);
        return c;
    }
    Before const before = is(in, Unary::kAbs) ? Before::kAbs : isSquare(in, refit) ? Before::kSquare : Before::kNothing;
    if (before != Before::kNothing && takesBefore(kind, before) && c.takes(in)) {
        c.attrs.before = before;
        c.putInFront(in);
    }
    bool const isRoot = is(next, Unary::kSqrt) && (kind == Kind::kSum || kind == Kind::kAvg);
    if ((isLog || isRoot) && c.takes(next)) {
        c.attrs.after = isLog ? After::kLog : After::kSqrt;
        c.nodes.push_back(next);
    }
    return c;
}

bool isOpen(ir::Node const& n)
{
    if (n.op != &ops::reduce::def() || n.outputs[0]->host || !isFloating(n.inputs[0]->type))
        return false;
    auto const& a = n.attrsAs<ops::reduce::Attrs>();
    return a.axes != 0 && a.isBare();
}

Result<bool> fuseChain(ir::Graph& g, ir::Node& sum, PassContext const& ctx)
{
    ReduceChain const c = chainOf(g, &sum, ctx.recipes);
    if (c.nodes.size() < 2)
        return false;
    ctx.log.info("fused {}", namesOf(c.nodes));
    TW_ASSIGN(ir::Node * fused, g.addNode(ops::reduce::def(), c.attrs.clone(), {c.x}, c.nodes[0]->name, {},
                                          g.positionOf(c.nodes.back())));
    replaceNodes(g, c.nodes, *fused);
    return true;
}

} // namespace

Result<bool> fuseReduce(ir::Graph& g, PassContext const& ctx)
{
    TW_ASSIGN(bool const changed, rewriteEach(g, isOpen, [&](ir::Node& sum) { return fuseChain(g, sum, ctx); }));
    if (changed)
        TW_TRY(removeDead(g, ctx)); // maxima that nobody takes off any more
    return changed;
}

} // namespace tw::passes
