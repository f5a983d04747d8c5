// SPDX-License-Identifier: Apache-2.0
// Has an attention work on [B, S, W] whose operands and result are transposed from and to that, as modules that compute row
// by row on [S, B, W] do for those who ask for batches first:
//   transpose([B, S, E]) -> rows -> attention of [S, B, W]  ->  rows -> attention of [B, S, W]
//   attention to [S, B, W] -> rows -> transpose to [B, S, E]  ->  attention to [B, S, W] -> rows
// Rows: products with weights, constants for each column added and such, activations, conversions, one scale's quantize and
// dequantize, and reshapes between [S, B, W] and [S * B, W]. Expects Form::kCanonical. Stands after fuse_attention, whose node
// takes rows in either order, and before sink_reshapes. Leaves alone: values in between that others read, wishes of the user
// for what lies there.
#include "ops/activation/op.h"
#include "ops/attention/op.h"
#include "ops/elementwise/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/shuffle/op.h"
#include "passes/attention/attention.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/quantization/quantization.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using ops::matrix_multiply::MatrixOperation;
using AttentionAttrs = ops::attention::Attrs;

ir::Shape withRowsSwapped(ir::Shape s)
{
    std::swap(s[0], s[1]);
    return s;
}

// A matrix that all rows are multiplied with.
bool isMatrixOfWeights(ir::Value const* v)
{
    auto const d = dequantizedOf(v);
    v = d ? d->integers : v;
    return v->isConstant() && isConstantOf(*v, 2);
}

// Whether the node makes each row of its output of that row of x, in the same place.
bool isRowByRow(ir::Node const& n, ir::Value const* x)
{
    ir::Value const& y = *n.outputs[0];
    if (hasWish(n) || n.outputs.size() != 1)
        return false;
    if (ops::matrix_multiply::isBareProduct(n)) {
        auto const& a = n.attrsAs<ops::matrix_multiply::Attrs>();
        return n.inputs[0] == x && n.inputs[1] != x && !a.connected && a.a == MatrixOperation::kNone &&
               a.b != MatrixOperation::kVector && isMatrixOfWeights(n.inputs[1]);
    }
    if (!(y.shape == x->shape))
        return false;
    if (n.op == &ops::elementwise::def()) {
        ir::Value const* other = otherInput(&n, x);
        return other && other != x && other->isConstant() && isConstantOf(*other, 1);
    }
    if (isQuantize(&n) || isDequantize(&n))
        return n.inputs[0] == x && isPerTensor(n);
    return isCast(&n) || n.op == &ops::activation::def();
}

// A shuffle that does nothing but swap the first two of three dimensions.
bool swapsRows(ir::Node const* n)
{
    if (!isShuffle(n) || n->inputs[0]->rank() != 3)
        return false;
    auto const& a = n->attrsAs<ops::shuffle::Attrs>();
    std::vector<int64_t> const& other = a.firstTranspose.empty() ? a.secondTranspose : a.firstTranspose;
    return other == kRowsOfAllFirst && (a.firstTranspose.empty() || a.secondTranspose.empty()) &&
           n->outputs[0]->shape == withRowsSwapped(n->inputs[0]->shape);
}

class RowsOfAttention
{
public:
    RowsOfAttention(ir::Graph& g, ir::Node& attention)
        : g_(g), attention_(attention), attrs_(attention.attrsAs<AttentionAttrs>())
    {}

    Result<bool> run()
    {
        bool changed = false;
        for (size_t i = 0; i < 3; ++i) {
            TW_ASSIGN(bool const isOne, operand(i));
            changed = changed || isOne;
        }
        TW_ASSIGN(bool const isResult, result());
        return changed || isResult;
    }

private:
    ir::Graph& g_;
    ir::Node& attention_;
    AttentionAttrs& attrs_;

    static ops::attention::Operand& operandOf(AttentionAttrs& a, size_t i) { return i == 0 ? a.q : i == 1 ? a.k : a.v; }

    // Between [S, B, W] and [S * B, W].
    static bool isFlat(ir::Shape const& s, ir::Shape const& three)
    {
        return s.size() == 2 && s[0] == three[0] * three[1];
    }
    bool isReshapeOfRows(ir::Node const* n, ir::Shape const& three) const
    {
        if (!isReshape(n) || hasWish(*n) || !(n->inputs[0]->shape.back() == n->outputs[0]->shape.back()))
            return false;
        for (ir::Value const* v : {n->inputs[0], n->outputs[0]})
            if (!isFlat(v->shape, three) && !(v->rank() == 3 && v->shape[0] == three[0] && v->shape[1] == three[1]))
                return false;
        // The way back must be one that attributes can say.
        ir::Shape to = n->outputs[0]->shape, from = n->inputs[0]->shape;
        (to.size() == 3 ? to : from) = withRowsSwapped(to.size() == 3 ? to : from);
        return reshapeDims(g_, from, to).has_value();
    }

    // `chain`, in the order of the data, on `x`, which has batches first.
    Result<ir::Value*> again(std::vector<ir::Node*> const& chain, ir::Value* old, ir::Value* x)
    {
        for (ir::Node* n : chain) {
            int const at = g_.positionOf(n) + 1;
            ir::Value* y = nullptr;
            if (isReshape(n)) {
                ir::Shape const& s = n->outputs[0]->shape;
                TW_ASSIGN(y, addReshape(g_, x, s.size() == 3 ? withRowsSwapped(s) : s, at));
                if (!y)
                    return internalError("'{}': no reshape for batches first", n->name);
            } else {
                std::vector<ir::Value*> inputs = n->inputs;
                std::ranges::replace(inputs, old, x);
                TW_ASSIGN(ir::Node * made, addAlike(g_, *n, std::move(inputs), at));
                y = made->outputs[0];
            }
            if (y->producer)
                takePlaceOf(*y->producer, *n);
            old = n->outputs[0];
            x = y;
        }
        return x;
    }
    void erase(std::vector<ir::Node*> const& chain)
    {
        for (size_t i = chain.size(); i-- > 0;)
            if (g_.useCount(chain[i]->outputs[0]) == 0)
                g_.eraseNode(chain[i]);
    }

    Result<bool> operand(size_t first)
    {
        ir::Value* const v = attention_.inputs[first];
        if (v->rank() != 3 || !operandOf(attrs_, first).rowsFirst || g_.isOutput(v) ||
            g_.useCount(v) != int(std::ranges::count(attention_.inputs, v)))
            return false;
        std::vector<size_t> which;
        for (size_t i = 0; i < attention_.inputs.size(); ++i)
            if (attention_.inputs[i] == v) {
                if (i > 2 || !operandOf(attrs_, i).rowsFirst)
                    return false;
                which.push_back(i);
            }
        std::vector<ir::Node*> chain; // the last one first
        ir::Value* at = v;
        for (; at->producer && !swapsRows(at->producer);) {
            ir::Node* const n = at->producer;
            if (at != v && (g_.isOutput(at) || g_.useCount(at) != 1))
                return false;
            ir::Value* from = nullptr;
            for (ir::Value* in : n->inputs)
                if (in && !from && (isReshapeOfRows(n, v->shape) || isRowByRow(*n, in)))
                    from = in;
            if (!from)
                return false;
            chain.push_back(n);
            at = from;
        }
        if (!at->producer || hasWish(*at->producer) || (at != v && at->rank() != 3))
            return false;
        std::ranges::reverse(chain);
        TW_ASSIGN(ir::Value * x, again(chain, at, at->producer->inputs[0]));
        chain.insert(chain.begin(), at->producer);
        for (size_t i : which) {
            operandOf(attrs_, i).rowsFirst = false;
            attention_.inputs[i] = x;
            if (attention_.body)
                TW_TRY(turnInput(*attention_.body, i, *x));
        }
        erase(chain);
        return true;
    }

    Result<bool> result()
    {
        ir::Value* const y = attention_.outputs[0];
        if (!attrs_.rowsFirst)
            return false;
        std::vector<ir::Node*> chain;
        ir::Node* n = nextOf(g_, &attention_);
        ir::Value const* at = y;
        for (; n && !swapsRows(n); at = n->outputs[0], n = nextOf(g_, n)) {
            if (std::ranges::count(n->inputs, at) != 1)
                return false;
            if (isShuffle(n) && !isReshape(n)) { // a reshape to [S, B, W], and the transpose
                auto const& s = n->attrsAs<ops::shuffle::Attrs>();
                if (!s.firstTranspose.empty() || s.secondTranspose != kRowsOfAllFirst || !isFlat(at->shape, y->shape) ||
                    n->outputs[0]->rank() != 3 || !(n->outputs[0]->shape[0] == y->shape[1]) ||
                    !(n->outputs[0]->shape[1] == y->shape[0]) || !reshapeDims(g_, at->shape, n->outputs[0]->shape))
                    return false;
                break;
            }
            if (!isReshapeOfRows(n, y->shape) && !isRowByRow(*n, at))
                return false;
            chain.push_back(n);
        }
        if (!n || hasWish(*n))
            return false;
        attrs_.rowsFirst = false;
        y->shape = withRowsSwapped(y->shape);
        if (attention_.body)
            TW_TRY(turnOutput(*attention_.body));
        TW_ASSIGN(ir::Value * x, again(chain, y, y));
        if (!(x->shape == n->outputs[0]->shape)) {
            TW_SET(x, addReshape(g_, x, n->outputs[0]->shape, g_.positionOf(n) + 1));
            if (!x)
                return internalError("'{}': no reshape for batches first", n->name);
            takePlaceOf(*x->producer, *n);
        }
        if (!replaceValue(g_, n->outputs[0], x))
            return internalError("'{}' makes an output that cannot be renamed", n->name);
        chain.push_back(n);
        erase(chain);
        return true;
    }

    static Result<void> turnInput(ir::Graph& body, size_t i, ir::Value const& x)
    {
        ir::Value* const old = body.inputs[i];
        ir::Value* const in = body.addInput(x.name, x.type, x.shape);
        body.inputs.pop_back();
        body.inputs[i] = in;
        ops::shuffle::Attrs a;
        a.firstTranspose = kRowsOfAllFirst;
        TW_ASSIGN(ir::Node * turned, body.addNode(ops::shuffle::def(), a.clone(), {in}, x.name + ".turned", {}, 0));
        body.replaceAllUses(old, turned->outputs[0]);
        body.eraseUnusedValues();
        return {};
    }
    // [S, B, W], in whatever shape, turned over.
    Result<void> turnOutput(ir::Graph& body)
    {
        ir::Value*& y = body.outputs[0];
        ir::Shape const rows = withRowsSwapped(attention_.outputs[0]->shape);
        if (!(y->shape == rows)) {
            TW_ASSIGN(ir::Value * same, addReshape(body, y, rows, int(body.nodes.size())));
            if (!same)
                return internalError("attention '{}': no reshape of its rows", attention_.name);
            y = same;
        }
        ops::shuffle::Attrs a;
        a.firstTranspose = kRowsOfAllFirst;
        TW_ASSIGN(ir::Node * turned, body.addNode(ops::shuffle::def(), a.clone(), {y}, attention_.name + ".turned"));
        y = turned->outputs[0];
        return {};
    }
};

} // namespace

Result<bool> batchesFirst(ir::Graph& g, PassContext const&)
{
    return rewriteEach(
        g,
        [](ir::Node const& n) {
            return n.op == &ops::attention::def() && !hasWish(n) && !n.attrsAs<AttentionAttrs>().segments;
        },
        [&](ir::Node& n) { return RowsOfAttention(g, n).run(); });
}

} // namespace tw::passes
