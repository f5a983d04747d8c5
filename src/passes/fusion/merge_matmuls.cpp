// SPDX-License-Identifier: Apache-2.0
// Makes one matrix product of those that give one attention its queries, keys and values out of the same tensor:
//   q = x wq + bq, k = x wk + bk, v = x wv + bv, attention(q, k, v)
//     ->  m = x [wq wk wv] + [bq bk bv], attention(m, m, m), which finds its heads in columns further on
// Two of the three merge as well. Weights and biases are constants, biases may be missing. The same of x and weights
// behind dequantize, where x is one tensor of integers with one scale: columns then have the scales of their weights.
// One product of three times the columns fills a GPU better, and there is one kernel instead of three; CPU builds keep
// the products.
// Expects Form::kCanonical. Stands after fuse_attention and sink_reshapes, which bring product, bias and attention
// together, and before fuse_activation, which takes the sum. Leaves alone: results that others read, operands of
// rank 4, wishes of the user that differ.
#include <algorithm>
#include <numeric>

#include "ops/attention/op.h"
#include "ops/concatenation/op.h"
#include "ops/dequantize/op.h"
#include "ops/elementwise/op.h"
#include "ops/gather/op.h"
#include "ops/matrix_multiply/op.h"
#include "passes/fuse_nodes.h"
#include "passes/join_constants.h"
#include "passes/list.h"
#include "passes/quantization/quantization.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using ops::matrix_multiply::MatrixOperation;
using Operation = ops::elementwise::Operation;

// x w + bias that ends in `result`, [.., columns].
struct Projection
{
    ir::Value* result = nullptr;
    ir::Node *product = nullptr, *sum = nullptr; // sum: null without bias
    ir::Value* bias = nullptr;
    std::vector<size_t> operands; // of the attention
    int64_t columns = 0, first = 0;

    bool isTransposed() const
    {
        return product->attrsAs<ops::matrix_multiply::Attrs>().b == MatrixOperation::kTranspose;
    }
    std::optional<Dequantized> quantized() const { return dequantizedOf(product->inputs[1]); }
    // As they are stored.
    ir::Value* weights() const { return quantized() ? quantized()->integers : product->inputs[1]; }
    int columnsAxis() const { return weights()->rank() - (isTransposed() ? 2 : 1); }
};

bool haveSameNumbers(ir::Value const* a, ir::Value const* b)
{
    auto const p = dequantizedOf(a), q = dequantizedOf(b);
    return a == b || (p && q && p->integers == q->integers && p->isPerTensor() && q->isPerTensor() &&
                      a->type == b->type && haveSameScale(*p->scale, *q->scale));
}

class MatmulMerger
{
public:
    MatmulMerger(ir::Graph& g, PassContext const& ctx) : g_(g), ctx_(ctx) {}

    Result<bool> run(ir::Node& attention)
    {
        std::vector<Projection> found;
        for (size_t i = 0; i < 3; ++i)
            take(attention, i, found);
        bool changed = false;
        while (found.size() > 1) {
            // Those that go with the first one.
            std::vector<Projection> group, rest;
            for (Projection& p : found)
                (group.empty() || fits(group[0], p) ? group : rest).push_back(std::move(p));
            if (group.size() > 1) {
                TW_TRY(merge(attention, group));
                changed = true;
            }
            found = std::move(rest);
        }
        return changed;
    }

private:
    void take(ir::Node const& attention, size_t operand, std::vector<Projection>& found) const
    {
        ir::Value* v = attention.inputs[operand];
        for (Projection& p : found)
            if (p.result == v) {
                p.operands.push_back(operand);
                return;
            }
        int const uses = int(std::ranges::count(attention.inputs, v));
        if (v->rank() != 3 || !v->producer || g_.isOutput(v) || g_.useCount(v) != uses)
            return;
        Projection p;
        p.result = v;
        p.operands = {operand};
        p.product = v->producer;
        if (p.product->op == &ops::elementwise::def()) {
            p.sum = p.product;
            if (p.sum->attrsAs<ops::elementwise::Attrs>().operation != Operation::kSum)
                return;
            size_t const at = p.sum->inputs[0]->isConstant() ? 0 : 1;
            p.bias = p.sum->inputs[at];
            p.product = onlyProducer(g_, p.sum->inputs[1 - at]);
            if (!p.product || !canJoin(*p.product, *p.sum))
                return;
        }
        if (!ops::matrix_multiply::isBareProduct(*p.product))
            return;
        auto const& a = p.product->attrsAs<ops::matrix_multiply::Attrs>();
        ir::Value const& y = *p.product->outputs[0];
        if (a.a != MatrixOperation::kNone || a.b == MatrixOperation::kVector || !isConstantOf(*p.weights(), 2) ||
            !(y.shape == v->shape) || !y.shape.back().isConst())
            return;
        auto const q = p.quantized();
        if (q && (!q->scale->isConstant() || (!q->isPerTensor() && q->axis != p.columnsAxis())))
            return;
        p.columns = y.shape.back().value();
        if (p.bias && (!isConstantOf(*p.bias, 1) || !(p.bias->shape.back() == y.shape.back())))
            return;
        found.push_back(std::move(p));
    }

    static bool fits(Projection const& a, Projection const& b)
    {
        return haveSameNumbers(a.product->inputs[0], b.product->inputs[0]) && a.isTransposed() == b.isTransposed() &&
               a.quantized().has_value() == b.quantized().has_value() && a.weights()->type == b.weights()->type &&
               a.weights()->rank() == b.weights()->rank() && canJoin(*a.product, *b.product) &&
               canJoin(*b.product, *a.product);
    }

    Result<void> merge(ir::Node& attention, std::vector<Projection>& group)
    {
        int64_t columns = 0;
        for (Projection& p : group) {
            p.first = columns;
            columns += p.columns;
        }
        ir::Node *const first = group[0].product, *earliest = first;
        for (Projection const& p : group) {
            if (g_.positionOf(p.product) < g_.positionOf(earliest))
                earliest = p.product;
            if (p.product->inputs[0] != first->inputs[0])
                TW_TRY(relyOnEqualScales(*first->inputs[0]->producer, *p.product->inputs[0]->producer, ctx_));
        }
        TW_ASSIGN(ir::Value * weights, joinedWeights(group, columns));
        if (group[0].quantized())
            TW_SET(weights, dequantizedTogether(group, *weights, g_.positionOf(earliest)));
        int const position = g_.positionOf(earliest);
        TW_ASSIGN(ir::Node * product, g_.addNode(ops::matrix_multiply::def(), first->attrs->clone(),
                                                 {earliest->inputs[0], weights}, first->name, {}, position));
        ir::Node* last = product;
        bool const biased = std::ranges::any_of(group, [](Projection const& p) { return p.bias; });
        if (biased) {
            ops::elementwise::Attrs const sum(Operation::kSum);
            TW_ASSIGN(ir::Value * bias, joinedBias(group, columns));
            TW_ASSIGN(last, g_.addNode(ops::elementwise::def(), sum.clone(), {product->outputs[0], bias},
                                       first->name + ".bias", {}, position + 1));
        }
        std::vector<ir::Node const*> products, sums;
        for (Projection const& p : group) {
            products.push_back(p.product);
            sums.push_back(p.sum);
        }
        joinAlike(*product, products);
        if (biased)
            joinAlike(*last, sums);
        last->outputs[0]->name = group[0].result->name + ".merged";
        auto& a = attention.attrsAs<ops::attention::Attrs>();
        for (Projection const& p : group)
            for (size_t i : p.operands) {
                (i == 0 ? a.q : i == 1 ? a.k : a.v).offset += p.first;
                attention.inputs[i] = last->outputs[0];
                if (attention.body)
                    TW_TRY(takeColumns(*attention.body, i, *last->outputs[0], p));
            }
        std::string names;
        for (Projection const& p : group) {
            names += (names.empty() ? "" : ", ") + p.product->name;
            std::vector<ir::Value*> const read = p.product->inputs;
            if (p.sum)
                g_.eraseNode(p.sum);
            g_.eraseNode(p.product);
            for (ir::Value* v : read)
                if (isDequantize(v->producer) && g_.useCount(v) == 0)
                    g_.eraseNode(v->producer);
        }
        ctx_.log.info("merged {} for {}", names, attention.name);
        return {};
    }

    // Weights side by side: rows of [.., k, columns], or one below the other where they are transposed.
    Result<ir::Value*> joinedWeights(std::vector<Projection> const& group, int64_t columns)
    {
        ir::Value const& w = *group[0].weights();
        bool const transposed = group[0].isTransposed();
        Extents dims = ir::extentsOf(w.shape);
        int64_t const k = dims[dims.rank - (transposed ? 1 : 2)];
        dims[dims.rank - (transposed ? 2 : 1)] = columns;
        return joined(group, w, dims, transposed ? 1 : k, transposed ? k : 1, false);
    }

    // The integers of `weights`, of which each part of the columns has its own scales.
    Result<ir::Value*> dequantizedTogether(std::vector<Projection> const& group, ir::Value& weights, int position)
    {
        recipe::Computation c(ctx_.recipes);
        std::vector<ir::Value*> scales;
        int64_t columns = 0;
        for (Projection const& p : group) {
            TW_TRY(relyOnPositiveScale(*p.quantized()->node, ctx_));
            Extents const count{p.quantized()->isPerTensor() ? 1 : p.columns};
            ir::Value* all = c.take(*p.quantized()->scale, count);
            if (count[0] != p.columns) {
                ops::elementwise::Attrs const product(Operation::kProd);
                TW_ASSIGN(all,
                          c.add(ops::elementwise::def(), product, {c.literal(DataType::kFloat, {p.columns}, 1), all}));
            }
            scales.push_back(all);
            columns += p.columns;
        }
        TW_ASSIGN(ir::Value * joined, c.add(ops::concatenation::def(), ops::concatenation::Attrs(0), scales));
        auto made = std::make_shared<ir::Constant>();
        TW_ASSIGN(made->data, c.finish(joined));
        ir::Value* const scale =
            g_.addConstant(weights.name + ".scales", DataType::kFloat, Extents{columns}, std::move(made));
        ir::Node const& like = *group[0].quantized()->node;
        auto attrs = std::make_unique<ops::dequantize::Attrs>(group[0].columnsAxis(), like.outputs[0]->type);
        TW_ASSIGN(ir::Node * node,
                  g_.addNode(ops::dequantize::def(), std::move(attrs), {&weights, scale}, like.name, {}, position));
        auto alike = mapped<ir::Node const*>(group, [&](Projection const& p) { return p.quantized()->node; });
        joinAlike(*node, alike);
        node->outputs[0]->name = weights.name + ".numbers";
        return node->outputs[0];
    }

    Result<ir::Value*> joinedBias(std::vector<Projection> const& group, int64_t columns)
    {
        Projection const& some = *std::ranges::find_if(group, [](Projection const& p) { return p.bias != nullptr; });
        Extents dims = Extents::ones(some.result->rank());
        dims[dims.rank - 1] = columns;
        return joined(group, *some.bias, dims, 1, 1, true);
    }

    // A constant like `one` of `rows` rows, to each of which a part gives its columns of `width` elements; zeros where
    // a bias is missing.
    Result<ir::Value*> joined(std::vector<Projection> const& group, ir::Value const& one, Extents const& dims,
                              int64_t rows, int64_t width, bool bias)
    {
        auto parts = mapped(group, [&](Projection const& p) {
            return RowPart{bias ? p.bias : p.weights(), 0, p.columns * width};
        });
        return joinConstants(g_, ctx_.recipes, one.name + ".merged", one.type, dims, rows, parts);
    }

    // The body's input `i` becomes the merged tensor, of which it takes its columns.
    static Result<void> takeColumns(ir::Graph& body, size_t i, ir::Value const& merged, Projection const& p)
    {
        ir::Value* const old = body.inputs[i];
        ir::Value* const x = body.addInput(merged.name, merged.type, merged.shape);
        body.inputs.pop_back();
        body.inputs[i] = x;
        Tensor columns(DataType::kInt32, {p.columns});
        auto* const at = static_cast<int32_t*>(columns.data());
        std::iota(at, at + p.columns, int32_t(p.first));
        ir::Value* const index =
            body.addConstant(old->name + ".columns", DataType::kInt32, columns.dims(), columns.data());
        ops::gather::Attrs a;
        a.axis = merged.rank() - 1;
        TW_ASSIGN(ir::Node * part, body.addNode(ops::gather::def(), a.clone(), {x, index}, old->name + ".part", {}, 0));
        body.replaceAllUses(old, part->outputs[0]);
        body.eraseUnusedValues();
        return {};
    }

    ir::Graph& g_;
    PassContext const& ctx_;
};

} // namespace

Result<bool> mergeMatmuls(ir::Graph& g, PassContext const& ctx)
{
    if (!ctx.target.gpu())
        return false;
    return rewriteEach(
        g, [](ir::Node const& n) { return n.op == &ops::attention::def(); },
        [&](ir::Node& n) { return MatmulMerger(g, ctx).run(n); });
}

} // namespace tw::passes
