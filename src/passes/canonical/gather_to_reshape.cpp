// SPDX-License-Identifier: Apache-2.0
// Gathers whose indices count through all that they read become reshapes, scatters whose indices count through all that they write their updates:
//   gather(x [n, ..], 0 .. n - 1 as [1, n])                                       ->  reshape(x, [1, n, ..])
//   gather(reshape(x [b, t], [b t]), t * (0 .. b - 1) [b, 1] + (0 .. t - 1))      ->  reshape(..)
//   gather of tuples(x [b, t], (0 .. b - 1 [b, 1, 1], 0 .. t - 1 [1, 1, t]))      ->  reshape(x, [b, 1, t])
//   scatter of tuples(x [b, t], (0 .. b - 1 [b, 1], 0 .. t - 1 [1, t]), u [b, t])  ->  u
// So frameworks read a mask of tokens at every sequence and place, and write what they have masked in the place of all of it (mask[:, :n] = ..).
// Any form; expects inferred shapes, and indices of constants, ranges,
// repetitions and sums. Leaves alone: a part, another order, dimensions that are not known to be equal.
#include "ops/gather/op.h"
#include "ops/scatter/op.h"
#include "passes/counted_indices.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

Result<bool> toReshape(ir::Graph& g, ir::Node& n)
{
    auto const& a = n.attrsAs<ops::gather::Attrs>();
    bool const isTuples = a.mode == ops::gather::Mode::kNd;
    if (a.mode == ops::gather::Mode::kElement || a.elementWiseDims != 0 || n.inputs[1]->rank() < 1)
        return false;
    ir::Shape const &x = n.inputs[0]->shape, &j = n.inputs[1]->shape;
    auto const indices = countingsOf(n, isTuples);
    auto const begin = x.begin() + (isTuples ? 0 : a.axis);
    if (indices.empty() || indices.size() > x.size() ||
        !countThrough(indices, {begin, begin + int64_t(indices.size())}, {j.begin(), j.end() - isTuples}))
        return false;
    TW_ASSIGN(ir::Value * y, addReshape(g, n.inputs[0], n.outputs[0]->shape, g.positionOf(&n)));
    if (ir::Node const* const flat = n.inputs[0]->producer; !y && isReshape(flat))
        TW_SET(y, addReshape(g, flat->inputs[0], n.outputs[0]->shape, g.positionOf(&n)));
    if (!y)
        return false;
    ir::Node& reshape = *y->producer;
    reshape.name = n.name;
    takePlaceOf(reshape, n);
    y->host = n.outputs[0]->host;
    if (!replaceValue(g, n.outputs[0], y)) {
        g.eraseNode(&reshape);
        return false;
    }
    g.eraseNode(&n);
    return true;
}

Result<bool> toUpdates(ir::Graph& g, ir::Node& n)
{
    auto const& a = n.attrsAs<ops::scatter::Attrs>();
    ir::Shape const &x = n.inputs[0]->shape, &j = n.inputs[1]->shape;
    if (a.mode != ops::scatter::Mode::kNd || a.reduction != ops::scatter::Reduction::kNone || hasWish(n) || j.empty() ||
        !(n.inputs[2]->shape == x))
        return false;
    auto const indices = countingsOf(n, true);
    if (indices.empty() || indices.size() > x.size() ||
        !countThrough(indices, {x.begin(), x.begin() + int64_t(indices.size())}, {j.begin(), j.end() - 1}) ||
        !replaceValue(g, n.outputs[0], n.inputs[2]))
        return false;
    g.eraseNode(&n);
    return true;
}

} // namespace

Result<bool> gatherToReshape(ir::Graph& g, PassContext const&)
{
    auto const isOne = [](ir::Node const& n) { return n.op == &ops::gather::def() || n.op == &ops::scatter::def(); };
    return rewriteEach(g, isOne,
                       [&](ir::Node& n) { return n.op == &ops::gather::def() ? toReshape(g, n) : toUpdates(g, n); });
}

} // namespace tw::passes
