// SPDX-License-Identifier: Apache-2.0
#include "passes/attention_operand.h"

#include <algorithm>

#include "ir/op_def.h"
#include "ops/dequantize/op.h"
#include "ops/shuffle/op.h"
#include "passes/attention_weights.h"
#include "passes/node_kinds.h"
#include "passes/quantization.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

// The view of a value [B, heads, ., .], or of one that has the first two dimensions as one; `wanted` names them. Null
// where no strides say it, as of one matrix for all batches.
std::optional<StridedView> headsOf(ir::Value* v, int depth, ir::Shape const& wanted)
{
    if (v->rank() == 4)
        return viewOf(v, depth);
    ir::Node* n = v->producer;
    std::vector<int64_t> const turned{0, 2, 1};
    if (depth > 0 && isShuffle(n)) {
        auto const& a = n->attrsAs<ops::shuffle::Attrs>();
        ir::Value* x = n->inputs[0];
        bool const isTurned = a.secondTranspose == turned;
        if (!a.hasReshape &&
            ((isTurned && a.firstTranspose.empty()) || (a.firstTranspose == turned && a.secondTranspose.empty()))) {
            auto view = headsOf(x, depth - 1, wanted);
            if (view) {
                permute(*view, {0, 1, 3, 2});
                view->nodes.push_back(n);
            }
            return view;
        }
        if (a.hasReshape && x->rank() == 4 && (isTurned || a.secondTranspose.empty())) {
            ir::Shape const parts = beforeTranspose(*n);
            StridedView view = viewOf(x, depth - 1);
            permute(view, a.firstTranspose);
            if (view.sizes == ir::Shape{wanted[0], wanted[1], parts[1], parts[2]}) {
                if (isTurned)
                    permute(view, {0, 1, 3, 2});
                view.nodes.push_back(n);
                return view;
            }
        }
    }
    StridedView view = viewOf(v, depth);
    if (!reshape(view, {wanted[0], wanted[1], v->shape[1], v->shape[2]}))
        return std::nullopt;
    return view;
}

// The shape under which the node can read a view's source.
std::optional<ir::Shape> shapeFor(StridedView const& view, ops::attention::Operand& o)
{
    ir::Dim const batch = view.sizes[0], rows = view.sizes[2], &rowStride = view.strides[2],
                  &headStride = view.strides[1];
    int64_t const heads = view.sizes[1].value(), size = view.sizes[3].value();
    ir::Dim const total = volume(view.source->shape);
    bool const oneHead = heads == 1;
    if (rowStride.isConst() && !rows.is(1) && (headStride.isConst() || oneHead)) {
        o.offset = view.offset;
        o.headStride = oneHead ? 0 : headStride.value();
        int64_t const width = rowStride.value();
        int64_t const end = ir::addSat(ir::addSat(o.offset, ir::mulSat(heads - 1, o.headStride)), size);
        bool const batches = batch.is(1) || view.strides[0] == rows * ir::Dim(width);
        if (o.headStride >= (oneHead ? 0 : 1) && end <= width && width <= INT32_MAX && batches &&
            total == batch * rows * ir::Dim(width))
            return ir::Shape{batch, rows, width};
    }
    bool const contiguous = view.offset == 0 && (rowStride == ir::Dim(size) || rows.is(1)) &&
                            (oneHead || headStride == rows * ir::Dim(size)) &&
                            (batch.is(1) || view.strides[0] == ir::Dim(heads) * rows * ir::Dim(size));
    o = {};
    if (contiguous && total == volume(view.sizes))
        return view.sizes;
    return std::nullopt;
}

} // namespace

namespace {

// [B, heads, perKey, S, size] that a shuffle joins to [B, heads * perKey, S, size], without its third dimension.
StridedView sharedHeadsOf(ir::Value* v, int depth, int64_t& perKey)
{
    ir::Node* n = v->producer;
    if (!isShuffle(n) || v->rank() != 4 || depth == 0)
        return {};
    auto const& a = n->attrsAs<ops::shuffle::Attrs>();
    ir::Value* x = n->inputs[0];
    bool const isTurned = a.secondTranspose == std::vector<int64_t>{0, 1, 3, 2};
    if (!a.hasReshape || !a.firstTranspose.empty() || (!isTurned && !a.secondTranspose.empty()) || x->rank() != 5)
        return {};
    ir::Shape const parts = beforeTranspose(*n), &s = x->shape;
    StridedView view = viewOf(x, depth - 1);
    if (!s[2].isConst() || !(parts == ir::Shape{s[0], s[1] * s[2], s[3], s[4]}) || !(view.sizes == s) ||
        !view.strides[2].is(0))
        return {};
    perKey = s[2].value();
    view.sizes.erase(view.sizes.begin() + 2);
    view.strides.erase(view.strides.begin() + 2);
    if (isTurned)
        permute(view, {0, 1, 3, 2});
    view.nodes.push_back(n);
    return view;
}

std::optional<AttentionOperand> fitted(StridedView view, bool turned, ir::Shape const& wanted)
{
    AttentionOperand found;
    if (turned)
        permute(view, {0, 1, 3, 2});
    if (!(view.sizes == wanted) || !(view.strides[3].is(1) || wanted[3].is(1)))
        return std::nullopt;
    auto const shape = shapeFor(view, found.operand);
    if (!shape)
        return std::nullopt;
    found.view = std::move(view);
    found.shape = *shape;
    return found;
}

} // namespace

std::optional<AttentionOperand> sharedOperandOf(ir::Value* v, bool turned, ir::Shape const& wanted, int64_t& perKey)
{
    for (int depth = kMostOperandNodes; depth >= 0; --depth) {
        StridedView const view = sharedHeadsOf(v, depth, perKey);
        if (view.sizes.empty() || perKey < 2 || wanted[1].value() % perKey != 0)
            continue;
        depth = std::min(depth, int(view.nodes.size()));
        if (auto found = fitted(view, turned, {wanted[0], wanted[1].value() / perKey, wanted[2], wanted[3]}))
            return found;
    }
    return std::nullopt;
}

std::optional<AttentionOperand> operandOf(ir::Value* v, bool turned, ir::Shape const& wanted)
{
    for (int depth = kMostOperandNodes; depth >= 0; --depth) {
        auto const view = headsOf(v, depth, wanted);
        if (!view)
            continue;
        depth = std::min(depth, int(view->nodes.size()));
        if (auto found = fitted(*view, turned, wanted))
            return found;
    }
    return std::nullopt;
}

Result<RaisedDequantize> raiseDequantize(ir::Graph& g, ir::Node const& dequantize, ir::Value* source,
                                         std::vector<ir::Node*> const& moving)
{
    RaisedDequantize made;
    int const at = source->producer ? g.positionOf(source->producer) + 1 : 0;
    TW_ASSIGN(made.node, g.addNode(ops::dequantize::def(), dequantize.attrs->clone(), {source, dequantize.inputs[1]},
                                   dequantize.name, {}, at));
    takePlaceOf(*made.node, dequantize);
    ir::Value *integers = source, *floats = made.node->outputs[0];
    floats->name = source->name + ".floats";
    for (ir::Node* n : moving) {
        std::vector<ir::Value*> inputs = n->inputs;
        std::replace(inputs.begin(), inputs.end(), integers, floats);
        integers = n->outputs[0];
        TW_ASSIGN(ir::Node * moved, addAlike(g, *n, std::move(inputs), g.positionOf(n) + 1));
        floats = moved->outputs[0];
        floats->name += ".floats";
        made.moving.push_back(moved);
    }
    return made;
}

} // namespace tw::passes
