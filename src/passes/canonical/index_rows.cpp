// SPDX-License-Identifier: Apache-2.0
// Scatters and gathers of elements whose index is one number a row become those of rows, which read one index for each:
//   gather of elements(x, axis, broadcast(j [1, .., n, .., 1]))      ->  gather(x, axis, j [n])
//   scatter of elements(x, axis 0, broadcast(j [n, 1, ..]), u)       ->  scatter of tuples(x, j [n, 1], u)
// with x and the indices of equal sizes but along the axis. So frameworks write sums over the edges of a graph, selections of rows and
// routing to experts. Any form; expects inferred shapes. Leaves alone: scatters along another axis, indices that vary within a row.
#include "ops/gather/op.h"
#include "ops/scatter/op.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

bool haveEqualRows(ir::Value const& x, ir::Value const& indices, size_t axis)
{
    for (size_t d = 0; d < x.shape.size(); ++d)
        if (d != axis && !(x.shape[d] == indices.shape[d]))
            return false;
    return true;
}

// Puts a node of `op` on x, the indices as `shape` and what else `n` reads in the place of `n`.
template <class A>
Result<bool> replace(ir::Graph& g, ir::Node& n, ir::Value* indices, ir::Shape const& shape, ir::OpDef const& op,
                     A attrs)
{
    ir::Value* one = indices;
    if (!(indices->shape == shape))
        TW_SET(one, addReshape(g, indices, shape, g.positionOf(&n)));
    if (!one)
        return false;
    std::vector<ir::Value*> inputs = n.inputs;
    inputs[1] = one;
    TW_ASSIGN(ir::Node * rows,
              g.addNode(op, std::make_unique<A>(std::move(attrs)), std::move(inputs), n.name, {}, g.positionOf(&n)));
    takePlaceOf(*rows, n);
    rows->outputs[0]->host = n.outputs[0]->host;
    if (!replaceValue(g, n.outputs[0], rows->outputs[0])) {
        g.eraseNode(rows);
        return false;
    }
    g.eraseNode(&n);
    return true;
}

Result<bool> toRows(ir::Graph& g, ir::Node& n)
{
    ir::Value const &x = *n.inputs[0], &j = *n.inputs[1];
    if (n.op == &ops::gather::def()) {
        auto a = n.attrsAs<ops::gather::Attrs>();
        if (a.mode != ops::gather::Mode::kElement || !haveEqualRows(x, j, size_t(a.axis)))
            return false;
        ir::Value* const numbers = repeatedBut(&j, size_t(a.axis));
        if (!numbers)
            return false;
        a.mode = ops::gather::Mode::kDefault;
        return replace(g, n, numbers, {j.shape[size_t(a.axis)]}, ops::gather::def(), a);
    }
    auto a = n.attrsAs<ops::scatter::Attrs>();
    if (a.mode != ops::scatter::Mode::kElement || a.axis != 0 || !haveEqualRows(x, j, 0))
        return false;
    ir::Value* const numbers = repeatedBut(&j, 0);
    if (!numbers)
        return false;
    a.mode = ops::scatter::Mode::kNd;
    return replace(g, n, numbers, {j.shape[0], ir::Dim(1)}, ops::scatter::def(), a);
}

} // namespace

Result<bool> indexRows(ir::Graph& g, PassContext const&)
{
    return rewriteEach(
        g, [](ir::Node const& n) { return n.op == &ops::gather::def() || n.op == &ops::scatter::def(); },
        [&](ir::Node& n) { return toRows(g, n); });
}

} // namespace tw::passes
