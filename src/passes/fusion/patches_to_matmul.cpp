// SPDX-License-Identifier: Apache-2.0
// Makes a matrix product of a convolution that cuts an image into patches which then become tokens:
//   conv(x [N, C, h r, w s], weights [K, C, r, s], stride (r, s)) -> [N, K, h, w] -> as [N, h w, K]
//     ->  patches of x, [N, h w, C r s] -> matmul(., weights as [K, C r s], transposed) -> + bias
// One copy of the image takes the place of one of the result, which is larger, and matrix kernels are ahead of those
// for strided convolutions. Weights may be integers behind a dequantize, which then stands in front of the product. For
// GPU builds. Expects Form::kCanonical. Stands before fuse_activation, which takes
// the bias. Leaves alone: windows that overlap, leave pixels out or reach into padding, groups, results that others
// read, wishes of the user that differ.

#include "ops/convolution/op.h"
#include "ops/dequantize/op.h"
#include "ops/elementwise/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/shuffle/op.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/quantization/quantization.h"
#include "passes/rewrite.h"
#include "passes/strided_view.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

// Sizes of patches and of their grid.
struct Patches
{
    int64_t c, k, r, s, h, w;
};

// The constant that the filters are or are dequantized of; null: there is none.
ir::Value* storedWeights(ir::Node const& conv)
{
    auto const q = dequantizedOf(conv.inputs[1]);
    ir::Value* const w = q ? q->integers : conv.inputs[1];
    return w->isConstant() && (!q || q->axis <= 0) ? w : nullptr;
}

std::optional<Patches> patchesOf(ir::Node const& conv)
{
    auto const& a = conv.attrsAs<ops::convolution::Attrs>();
    ir::Value const &x = *conv.inputs[0], &w = *conv.inputs[1], &y = *conv.outputs[0];
    if (x.rank() != 4 || w.rank() != 4 || !storedWeights(conv) || !isFloating(x.type) || a.groups != 1)
        return std::nullopt;
    if (hasInput(conv, 2) && (!conv.inputs[2]->isConstant() || conv.inputs[2]->rank() != 1))
        return std::nullopt;
    for (size_t i = 0; i < 2; ++i) {
        ir::Dim const &size = x.shape[2 + i], &count = y.shape[2 + i], &window = w.shape[2 + i];
        if (!size.isConst() || !count.isConst() || a.strides[i] != window.value() || a.dilations[i] != 1 ||
            size.value() != count.value() * window.value())
            return std::nullopt; // sizes that fit leave no room for padding
    }
    auto at = [](ir::Shape const& s, size_t i) { return s[i].value(); };
    if (!x.shape[1].isConst())
        return std::nullopt;
    return Patches{at(w.shape, 1), at(w.shape, 0), at(w.shape, 2), at(w.shape, 3), at(y.shape, 2), at(y.shape, 3)};
}

// The only reader of the result when all that it does is to make [N, h w, K] of [N, K, h, w].
ir::Node* tokensOf(ir::Graph const& g, ir::Node const& conv, Patches const& p)
{
    ir::Node* const reader = nextOf(g, &conv);
    if (!reader || reader->op != &ops::shuffle::def())
        return nullptr;
    ir::Value const* const y = conv.outputs[0];
    StridedView const view = viewOf(reader->outputs[0], 1);
    int64_t const grid = p.h * p.w;
    bool const tokens = view.source == y && view.sizes() == ir::Shape{y->shape[0], grid, p.k} &&
                        (view.stride(0) == ir::Dim(p.k * grid) || y->shape[0].is(1)) &&
                        (view.stride(1).is(1) || grid == 1) && (view.stride(2) == ir::Dim(grid) || p.k == 1);
    return tokens ? reader : nullptr;
}

Result<bool> rewrite(ir::Graph& g, ir::Node& conv, PassContext const& ctx)
{
    auto const p = patchesOf(conv);
    ir::Node* const tokens = p ? tokensOf(g, conv, *p) : nullptr;
    if (!tokens || !canJoin(conv, *tokens))
        return false;
    int position = g.positionOf(&conv);
    auto add = [&](ir::OpDef const& op, std::unique_ptr<ir::AttrsBase> attrs, std::vector<ir::Value*> inputs,
                   std::string const& name) { return g.addNode(op, std::move(attrs), inputs, name, {}, position++); };
    ops::shuffle::Attrs cut; // [N, h, w, C, r, s]
    cut.hasReshape = true;
    cut.reshape = {0, p->c, p->h, p->r, p->w, p->s};
    cut.secondTranspose = {0, 2, 4, 1, 3, 5};
    ops::shuffle::Attrs join;
    join.hasReshape = true;
    join.reshape = {0, p->h * p->w, p->c * p->r * p->s};
    ops::matrix_multiply::Attrs product;
    product.b = ops::matrix_multiply::MatrixOperation::kTranspose;
    ir::Value const& w = *storedWeights(conv);
    ir::Value* weights = g.addConstant(w.name, w.type, {1, p->k, p->c * p->r * p->s}, w.constant);
    ir::Value* const read = conv.inputs[1];
    if (auto const q = dequantizedOf(read)) {
        auto attrs = std::make_unique<ops::dequantize::Attrs>(q->axis < 0 ? -1 : 1, read->type);
        TW_ASSIGN(ir::Node * d, add(ops::dequantize::def(), std::move(attrs), {weights, q->scale}, q->node->name));
        takePlaceOf(*d, *q->node);
        weights = d->outputs[0];
        weights->name = read->name;
    }
    TW_ASSIGN(ir::Node * patches, add(ops::shuffle::def(), cut.clone(), {conv.inputs[0]}, conv.name + ".patches"));
    TW_ASSIGN(ir::Node * rows,
              add(ops::shuffle::def(), join.clone(), {patches->outputs[0]}, conv.name + ".patches.rows"));
    TW_ASSIGN(ir::Node * last,
              add(ops::matrix_multiply::def(), product.clone(), {rows->outputs[0], weights}, conv.name));
    for (ir::Node* n : {patches, rows, last}) {
        n->layers = conv.layers;
        n->device = conv.device;
    }
    last->precision = conv.precision;
    last->outputs[0]->name = conv.outputs[0]->name + ".tokens";
    if (hasInput(conv, 2)) {
        ir::Value const& b = *conv.inputs[2];
        ir::Value* const bias = g.addConstant(b.name, b.type, {1, 1, p->k}, b.constant);
        ops::elementwise::Attrs const sum(ops::elementwise::Operation::kSum);
        TW_ASSIGN(ir::Node * biased,
                  add(ops::elementwise::def(), sum.clone(), {last->outputs[0], bias}, conv.name + ".bias"));
        biased->layers = conv.layers;
        biased->precision = conv.precision;
        biased->device = conv.device;
        last = biased;
    }
    joinOrigins(*last, *last, *tokens);
    ir::Value *from = tokens->outputs[0], *to = last->outputs[0];
    to->name = from->name;
    g.replaceAllUses(from, to);
    ctx.log.info("convolution {} cuts patches: it is a matrix product now", conv.name);
    g.eraseNode(tokens);
    g.eraseNode(&conv);
    if (!read->isConstant() && g.useCount(read) == 0)
        g.eraseNode(read->producer);
    return true;
}

} // namespace

Result<bool> patchesToMatmul(ir::Graph& g, PassContext const& ctx)
{
    if (!ctx.target.gpu())
        return false;
    return rewriteEach(g, ops::convolution::isBareForward, [&](ir::Node& n) { return rewrite(g, n, ctx); });
}

} // namespace tw::passes
