// SPDX-License-Identifier: Apache-2.0
// Scatters whose rows lie one behind the other are updates of a cache, which need no transposes and may be in place:
//   transpose(scatter(transpose(cache), range(s) + p, transpose(u)))  ->  cache_update(cache, u, p)
//   scatter of elements(cache, axis, broadcast(range(s) + p), u)      ->  the same
//   transpose(scatter(transpose(cache), j, transpose(u)))             ->  scatter of elements(cache, axis, broadcast(j), u), for all other places
// p is one element, for all images. So torch.export and TorchScript write static caches. Rows wrap around, as negative indices do. Any form;
// stands with the passes that run until nothing changes, in front of fuse_attention, whose keys and values are then caches as they
// lie. Leaves alone: rows that are the first dimension, results that others read as they are moved, sums, wishes of the user.
#include "ops/scatter/op.h"
#include "ops/slice/op.h"
#include "passes/caches/written_rows.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

// [b], of one element.
Result<ir::Value*> repeated(ir::Graph& g, ir::Value* one, ir::Value* of, ir::Node const& n)
{
    auto add = [&](ir::OpDef const& op, ir::AttrsBase const& a, std::vector<ir::Value*> inputs) -> Result<ir::Value*> {
        TW_ASSIGN(ir::Node * m, g.addNode(op, a.clone(), std::move(inputs), n.name + ".index", {}, g.positionOf(&n)));
        takePlaceOf(*m, n);
        return m->outputs[0];
    };
    if (!(one->shape == ir::Shape{1}))
        TW_SET(one, addReshape(g, one, {1}, g.positionOf(&n)));
    ir::Dim const& images = of->shape[0];
    if (!one || images.is(1))
        return one;
    ops::slice::Attrs a;
    a.start = {0};
    a.stride = {0};
    if (images.isConst()) {
        a.size = {images.value()};
        return add(ops::slice::def(), a, {one});
    }
    TW_ASSIGN(ir::Value * dims, add(ops::shape::def(), ir::NoAttrs(), {of}));
    TW_SET(dims, add(ops::slice::def(), ops::slice::partOf(dims->shape, 0, 0, 1), {dims}));
    return add(ops::slice::def(), a, {one, nullptr, dims});
}

Result<bool> rewrite(ir::Graph& g, ir::Node& n)
{
    auto const rows = writtenRows(g, n);
    ir::Value* const begin = rows ? beginOf(rows->places) : nullptr;
    if (rows && !begin && !rows->order.empty())
        return toElements(g, *rows);
    if (!begin || begin->type != DataType::kInt32)
        return false;
    TW_ASSIGN(ir::Value * index, repeated(g, begin, rows->cache, n));
    return index ? toUpdate(g, *rows, index, true) : false;
}

} // namespace

Result<bool> rowsToCacheUpdate(ir::Graph& g, PassContext const&)
{
    return rewriteEach(
        g, [](ir::Node const& n) { return n.op == &ops::scatter::def(); }, [&](ir::Node& n) { return rewrite(g, n); });
}

} // namespace tw::passes
