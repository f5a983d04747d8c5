// SPDX-License-Identifier: Apache-2.0
// Makes a matrix product of a convolution of single pixels whose channels are put first for it and last again behind it, as
// models of sequences write linear layers, and models of images those between operations on channels:
//   [N, P.., C] -> [N, C, P..] -> conv(., weights [K, C, 1..]) -> [N, K, P..] -> [N, P.., K]
//     ->  matmul(x, weights as [K, C], transposed) -> + bias
// Expects Form::kCanonical. Stands after fuse_attention, whose result may be what the channels are put first of, and before
// sink_reshapes. Leaves alone: computed weights, groups, steps, padding, results that others read, wishes of the user that
// differ.
#include "ops/convolution/op.h"
#include "ops/elementwise/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/shuffle/op.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/rewrite.h"
#include "passes/strided_view.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

constexpr int kDepth = 4; // nodes between the convolution and what has its channels last

bool isOfPixels(ir::Node const& conv)
{
    auto const& a = conv.attrsAs<ops::convolution::Attrs>();
    ir::Value const& w = *conv.inputs[1];
    bool const hasFreeBias = hasInput(conv, 2) && (!conv.inputs[2]->isConstant() || conv.inputs[2]->rank() != 1);
    if (!w.isConstant() || !isFloating(w.type) || a.groups != 1 || hasFreeBias)
        return false;
    ir::Shape const &x = conv.inputs[0]->shape, &y = conv.outputs[0]->shape;
    if (x.size() != w.shape.size())
        return false;
    for (size_t i = 2; i < x.size(); ++i)
        if (!w.shape[i].is(1) || a.strides[i - 2] != 1 || !(x[i] == y[i])) // sizes that stay leave no room for padding
            return false;
    return true;
}

// The second dimension goes to the end.
std::vector<int64_t> channelsLast(int rank)
{
    std::vector<int64_t> order{0};
    for (int64_t d = 2; d < rank; ++d)
        order.push_back(d);
    order.push_back(1);
    return order;
}

// The tensor with channels last that x, with channels second, is of; null: there is none.
ir::Value* rowsOf(ir::Value* x)
{
    StridedView view = viewOf(x, kDepth);
    if (view.nodes.empty() || !view.source || view.source->isConstant() || view.source->rank() < 2 ||
        !(view.source->shape.back() == x->shape[1]))
        return nullptr;
    permute(view, channelsLast(x->rank()));
    return isInOrder(view, view.source->shape) ? view.source : nullptr;
}

// The only reader of y, if all that it does is to put channels last; null: it is none.
ir::Node* readerOf(ir::Graph const& g, ir::Node const& conv)
{
    ir::Node* const reader = nextOf(g, &conv);
    if (!reader || reader->op != &ops::shuffle::def() || reader->outputs.size() != 1)
        return nullptr;
    ir::Value* const y = conv.outputs[0];
    StridedView view = viewOf(reader->outputs[0], 1);
    if (view.source != y || view.offset != 0)
        return nullptr;
    std::vector<int64_t> const order = channelsLast(y->rank());
    ir::Shape rows, steps; // of y with its channels last
    for (int64_t d : order) {
        ir::Dim step = 1;
        for (size_t inner = size_t(d) + 1; inner < y->shape.size(); ++inner)
            step = step * y->shape[inner];
        rows.push_back(y->shape[size_t(d)]);
        steps.push_back(step);
    }
    if (!reshape(view, rows))
        return nullptr;
    for (size_t d = 0; d < rows.size(); ++d)
        if (!rows[d].is(1) && !(view.stride(d) == steps[d]))
            return nullptr;
    return reader;
}

Result<bool> takeAsRows(ir::Graph& g, ir::Node& conv)
{
    ir::Value* const x = isOfPixels(conv) ? rowsOf(conv.inputs[0]) : nullptr;
    ir::Node* const reader = x ? readerOf(g, conv) : nullptr;
    if (!reader || !canJoin(conv, *reader))
        return false;
    ir::Value const& w = *conv.inputs[1];
    ir::Value* const result = reader->outputs[0];
    ir::Shape shape = x->shape; // of the product
    shape.back() = w.shape[0];
    auto const dims = reshapeDims(g, shape, result->shape);
    if (!(shape == result->shape) && !dims)
        return false;
    int position = g.positionOf(&conv);
    auto add = [&](ir::OpDef const& op, std::unique_ptr<ir::AttrsBase> attrs, std::vector<ir::Value*> inputs,
                   std::string const& name) -> Result<ir::Node*> {
        TW_ASSIGN(ir::Node * n, g.addNode(op, std::move(attrs), inputs, name, {}, position++));
        takePlaceOf(*n, conv);
        return n;
    };
    ir::Value* const matrix = g.addConstant(w.name, w.type, {w.shape[0].value(), w.shape[1].value()}, w.constant);
    ops::matrix_multiply::Attrs product;
    product.b = ops::matrix_multiply::MatrixOperation::kTranspose;
    TW_ASSIGN(ir::Node * last,
              add(ops::matrix_multiply::def(), product.clone(), {x, withRank(g, *matrix, x->rank())}, conv.name));
    if (hasInput(conv, 2)) {
        last->outputs[0]->name = conv.outputs[0]->name + ".rows";
        ops::elementwise::Attrs const sum(ops::elementwise::Operation::kSum);
        TW_ASSIGN(last, add(ops::elementwise::def(), sum.clone(),
                            {last->outputs[0], withRank(g, *conv.inputs[2], x->rank())}, conv.name + ".bias"));
    }
    if (!(shape == result->shape)) {
        ops::shuffle::Attrs back;
        back.hasReshape = true;
        back.reshape = dims->dims;
        back.zeroIsPlaceholder = dims->placeholder;
        last->outputs[0]->name = conv.outputs[0]->name + ".rows_last";
        TW_ASSIGN(last, add(ops::shuffle::def(), back.clone(), {last->outputs[0]}, reader->name));
    }
    joinOrigins(*last, *last, *reader);
    last->outputs[0]->name = result->name;
    g.replaceAllUses(result, last->outputs[0]);
    g.eraseNode(reader);
    g.eraseNode(&conv);
    return true;
}

} // namespace

Result<bool> pixelsToRows(ir::Graph& g, PassContext const& ctx)
{
    TW_ASSIGN(bool const changed,
              rewriteEach(g, ops::convolution::isBareForward, [&](ir::Node& n) { return takeAsRows(g, n); }));
    if (changed)
        TW_TRY(removeDead(g, ctx));
    return changed;
}

} // namespace tw::passes
