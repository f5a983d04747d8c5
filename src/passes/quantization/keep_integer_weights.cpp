// SPDX-License-Identifier: Apache-2.0
// Keeps weights of i8 as they are where what they are multiplied with is not quantized, instead of folding them to floats: a
// product of few rows takes as long as its weights take to be read.
//   before: matmul(x, dequantize(w, s))        after: nbit_product(x, w + 128 in blocks of whole rows, s)
// Expects Form::kCanonical. Stands behind move_quantization, which has brought each dequantize to the product that reads it, so that
// one in front of x is seen: such products are those of integers, and fuse_quantization's. Leaves alone: weights that refit
// may reach, products of more than kMostRows rows, where floats are not much slower or faster, and of few weights; on GPUs those
// whose rows are not known to be few; CPUs without vectors; scales along the summed dimension.
#include <cstring>

#include "ops/matrix_multiply/op.h"
#include "ops/nbit_product/op.h"
#include "passes/list.h"
#include "passes/quantization/quantization.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using ops::matrix_multiply::MatrixOperation;

constexpr int64_t kMostRows = 64, kFewRows = 8, kLeastSide = 16;

// Of x without its last dimension; -1: only a run tells.
int64_t rowsOf(ir::Shape const& x)
{
    int64_t rows = 1;
    for (size_t i = 0; i + 1 < x.size(); ++i) {
        if (!x[i].isConst())
            return -1;
        rows = ir::mulSat(rows, x[i].value());
    }
    return rows;
}

bool isWorth(int64_t rows, PassContext const& ctx)
{
    if (auto const* cpu = ctx.target.cpu())
        return cpu->isa != TargetInfo::Isa::kBaseline && rows <= kMostRows;
    return rows >= 0 && rows <= kFewRows;
}

Result<bool> rewrite(ir::Graph& g, ir::Node& product, PassContext const& ctx)
{
    auto const& attrs = product.attrsAs<ops::matrix_multiply::Attrs>();
    ir::Value* const x = product.inputs[0];
    auto const w = dequantizedOf(product.inputs[1]);
    if (!w || !w->integers->isConstant() || !w->scale->isConstant() || dequantizedOf(x) ||
        refitReaches(*w->integers, ctx.recipes) || refitReaches(*w->scale, ctx.recipes) || hasWish(product) ||
        !isFloating(x->type) || attrs.a == MatrixOperation::kTranspose || attrs.b == MatrixOperation::kVector)
        return false;
    // [k, n], or [n, k], behind dimensions of 1.
    ir::Shape const& shape = w->integers->shape;
    size_t const rank = shape.size();
    bool const isTurned = attrs.b == MatrixOperation::kTranspose;
    int64_t const rows = shape[rank - 2].value(), columns = shape[rank - 1].value();
    int64_t const n = isTurned ? rows : columns, k = isTurned ? columns : rows;
    if (ir::extentsOf(shape).volume() != n * k || n < kLeastSide || k < kLeastSide ||
        product.outputs[0]->rank() != x->rank() || !isWorth(rowsOf(x->shape), ctx) ||
        (!w->isPerTensor() && size_t(w->axis) != rank - (isTurned ? 2 : 1)))
        return false;
    // What kernels take at once, and what blocks are multiples of.
    int64_t const multiple = k > 256 ? 256 : 16;
    ops::nbit_product::Attrs a;
    a.k = k;
    a.bits = 8;
    a.block = (k + multiple - 1) / multiple * multiple;
    TensorRef const integers = constantOf(w->integers), scale = constantOf(w->scale);
    Tensor words(DataType::kInt32, {n, 1, a.words()}), scales(DataType::kFloat, {n, 1});
    auto* const bytes = words.ref().as<uint8_t>();
    for (int64_t j = 0; j < n; ++j) {
        scales.ref().set(j, scale.get(w->isPerTensor() ? 0 : j));
        for (int64_t p = 0; p < k; ++p)
            bytes[j * a.block + p] = uint8_t(integers.as<int8_t>()[isTurned ? j * k + p : p * n + j] + 128);
    }
    ir::Node const* const dequantize = product.inputs[1]->producer;
    std::vector<ir::Value*> in{
        x, g.addConstant(w->integers->name + ".words", DataType::kInt32, words.ref().dims, words.ref().data),
        g.addConstant(w->scale->name + ".rows", DataType::kFloat, scales.ref().dims, scales.ref().data)};
    TW_ASSIGN(ir::Node * made,
              g.addNode(ops::nbit_product::def(), a.clone(), std::move(in), product.name, {}, g.positionOf(&product)));
    takePlaceOf(*made, product);
    made->layers.insert(made->layers.end(), dequantize->layers.begin(), dequantize->layers.end());
    made->outputs[0]->name = product.outputs[0]->name;
    g.replaceAllUses(product.outputs[0], made->outputs[0]);
    g.eraseNode(&product);
    if (g.useCount(dequantize->outputs[0]) == 0)
        g.eraseNode(const_cast<ir::Node*>(dequantize));
    return true;
}

} // namespace

Result<bool> keepIntegerWeights(ir::Graph& g, PassContext const& ctx)
{
    return rewriteEach(g, ops::matrix_multiply::isBareProduct, [&](ir::Node& n) { return rewrite(g, n, ctx); });
}

} // namespace tw::passes
