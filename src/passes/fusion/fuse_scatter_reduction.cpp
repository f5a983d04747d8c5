// SPDX-License-Identifier: Apache-2.0
// Makes one node of a loop that goes along updates, reads what stands where one belongs, and writes both, reduced.
//   loop(x, count, indices, updates) { y = scatter(c, i, op(gather(c, i), u)) }    ->  scatter(x, indices, updates, op)
// with op one of sum, prod, max, min, and i, u the slices of this trip: of elements along the axis of the scatter, back
// in their place as a dimension of 1; of tuples along the first dimension. So ScatterElements and ScatterND with a
// reduction are imported, for which 8.5 has no layer. Any form; expects inferred shapes. Stands among the canonical
// passes, where the body is as it was imported. Leaves alone: loops that go backwards, end early, or carry more; counts
// that are not seen to be all updates; types that a scatter does not reduce.
#include <algorithm>

#include "ir/op_def.h"
#include "ops/elementwise/op.h"
#include "ops/gather/op.h"
#include "ops/loop/op.h"
#include "ops/scatter/op.h"
#include "ops/shuffle/op.h"
#include "passes/list.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using Operation = ops::elementwise::Operation;
using ops::scatter::Mode;
using ops::scatter::Reduction;

Reduction reductionOf(Operation o)
{
    return o == Operation::kSum    ? Reduction::kAdd
           : o == Operation::kProd ? Reduction::kMul
           : o == Operation::kMin  ? Reduction::kMin
           : o == Operation::kMax  ? Reduction::kMax
                                   : Reduction::kNone;
}

// The node that makes `v`, if it is of this op.
ir::Node const* madeBy(ir::Value const* v, ir::OpDef const& op)
{
    return v && v->producer && v->producer->op == &op ? v->producer : nullptr;
}

// Whether `v` is `slice`, which lacks the dimension `axis`, with a 1 there.
bool isInPlace(ir::Value const* v, ir::Value const* slice, int64_t axis)
{
    ir::Node const* const n = madeBy(v, ops::shuffle::def());
    if (!n || n->inputs[0] != slice)
        return false;
    auto const& a = n->attrsAs<ops::shuffle::Attrs>();
    ir::Shape shape = slice->shape;
    shape.insert(shape.begin() + std::min(axis, int64_t(shape.size())), ir::Dim(1));
    return a.firstTranspose.empty() && a.secondTranspose.empty() && v->shape == shape;
}

// All slices are seen, from the first to the last.
bool goesAlongAll(ir::Node const& loop, ops::loop::Attrs const& a)
{
    ops::loop::Layout const at(a);
    if (at.carried != 1 || at.iterated != 2 || at.stacked != 0 || a.iteratorAxes[0] != a.iteratorAxes[1] ||
        a.iteratorReverse[0] != 0 || a.iteratorReverse[1] != 0 || !ops::loop::isAlwaysTrue(*loop.regions[0]))
        return false;
    ir::Value const *const count = loop.inputs[at.count()], *const indices = loop.inputs[at.iteratedAt(0)],
                           *const updates = loop.inputs[at.iteratedAt(1)];
    if (!count || !indices || !updates)
        return false;
    size_t const axis = size_t(a.iteratorAxes[0]);
    ir::Dim const size = indices->shape[axis];
    if (!(updates->shape[axis] == size))
        return false;
    if (TensorRef const known = constantOf(count); known.data)
        return size.isConst() && known.count() == 1 && known.getInt(0) == size.value();
    return count->content && count->content->size() == 1 && (*count->content)[0] == size;
}

// What the body does, if it is a scatter.
std::optional<ops::scatter::Attrs> scatterOf(ir::Graph const& body, int64_t axis)
{
    ir::Value const *const data = body.inputs[0], *const index = body.inputs[1], *const update = body.inputs[2];
    ir::Node const* const scatter = madeBy(body.outputs[0], ops::scatter::def());
    ir::Node const* const combined = scatter ? madeBy(scatter->inputs[2], ops::elementwise::def()) : nullptr;
    if (!combined || scatter->inputs[0] != data)
        return {};
    size_t const old = madeBy(combined->inputs[0], ops::gather::def()) ? 0 : 1;
    ir::Node const* const gather = madeBy(combined->inputs[old], ops::gather::def());
    if (!gather || gather->inputs[0] != data || gather->inputs[1] != scatter->inputs[1])
        return {};
    auto a = scatter->attrsAs<ops::scatter::Attrs>();
    auto const& g = gather->attrsAs<ops::gather::Attrs>();
    Reduction const reduction = reductionOf(combined->attrsAs<ops::elementwise::Attrs>().operation);
    if (a.reduction != Reduction::kNone || reduction == Reduction::kNone || g.elementWiseDims != 0)
        return {};
    ir::Value const *const at = scatter->inputs[1], *const with = combined->inputs[1 - old];
    bool const fits = a.mode == Mode::kElement
                          ? a.axis == axis && g.mode == ops::gather::Mode::kElement && g.axis == axis &&
                                isInPlace(at, index, axis) && isInPlace(with, update, axis)
                          : axis == 0 && g.mode == ops::gather::Mode::kNd && at == index && with == update &&
                                index->shape.size() == 1;
    a.reduction = reduction;
    return fits ? std::optional(a) : std::nullopt;
}

Result<bool> fuse(ir::Graph& g, ir::Node& loop)
{
    auto const& attrs = loop.attrsAs<ops::loop::Attrs>();
    if (!goesAlongAll(loop, attrs))
        return false;
    ops::loop::Layout const at(attrs);
    ir::Value* const x = loop.inputs[0];
    bool const isReduced = isFloating(x->type) || x->type == DataType::kInt32;
    auto const scatter = scatterOf(*loop.regions[1], attrs.iteratorAxes[0]);
    if (!scatter || !isReduced || loop.inputs[at.iteratedAt(1)]->type != x->type)
        return false;
    std::vector<ir::Value*> inputs{x, loop.inputs[at.iteratedAt(0)], loop.inputs[at.iteratedAt(1)]};
    TW_ASSIGN(ir::Node * n,
              g.addNode(ops::scatter::def(), scatter->clone(), std::move(inputs), loop.name, {}, g.positionOf(&loop)));
    takePlaceOf(*n, loop);
    n->outputs[0]->host = loop.outputs[0]->host;
    if (!replaceValue(g, loop.outputs[0], n->outputs[0])) {
        g.eraseNode(n);
        return false;
    }
    g.eraseNode(&loop);
    return true;
}

} // namespace

Result<bool> fuseScatterReduction(ir::Graph& g, PassContext const&)
{
    return changeEach(g, isLoop, [&](ir::Node& loop) { return fuse(g, loop); });
}

} // namespace tw::passes
