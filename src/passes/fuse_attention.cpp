// SPDX-License-Identifier: Apache-2.0
// Makes one attention node of what exporters write for it:
//   s = q k' ; a factor on s, q or k; where(condition, s, number) or where(condition, number, s); s + mask
//   y = transpose(softmax(s) v, [0,2,1,3]) and perhaps a reshape
// q, k and v are [B, heads, S, size]. The reshapes, transposes, slices and gathers that take them out of [B, S,
// columns] (of a tensor each, or all three of one) are read through: the node reads the rows where they lie. What
// others read too of those stays for them. Expects Form::kCanonical. Stands in front of lift_reshapes and the fusions
// of matrix products. Leaves alone: scores that others read, masks that are not [B or 1, heads or 1, Si or 1, Sj],
// wishes of the user that differ.
#include <algorithm>
#include <cmath>

#include "ops/attention/op.h"
#include "ops/elementwise/op.h"
#include "ops/identity/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/registry.h"
#include "ops/select/op.h"
#include "ops/shuffle/op.h"
#include "ops/softmax/op.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/rewrite.h"
#include "passes/strided_view.h"

namespace tw::passes {

namespace {

using Operation = ops::elementwise::Operation;
using ops::matrix_multiply::MatrixOperation;

bool is(ir::Node const* n, Operation operation)
{
    return n && n->op == &ops::elementwise::def() && n->attrsAs<ops::elementwise::Attrs>().operation == operation;
}

// A network in FP16 may compute scores or softmax in f32.
bool isCast(ir::Node const* n)
{
    return n && n->op == &ops::identity::def() && isFloating(n->inputs[0]->type) && isFloating(n->outputs[0]->type);
}

ir::Node* softmaxOf(ir::Node const* product)
{
    ir::Node* n = product->inputs[0]->producer;
    if (isCast(n))
        n = n->inputs[0]->producer;
    return n && n->op == &ops::softmax::def() ? n : nullptr;
}

constexpr int kMostNodes = 8; // between an operand and the tensor it is a part of

class Match
{
public:
    Match(ir::Graph& g, bool refittable) : g_(g), refittable_(refittable) {}

    // `product` is softmax(s) v.
    bool from(ir::Node* product)
    {
        ir::Node* softmax = softmaxOf(product);
        if (!softmax || product->outputs[0]->rank() != 4 || softmax->attrsAs<ops::softmax::Attrs>().axis != 3)
            return false;
        auto const& last = product->attrsAs<ops::matrix_multiply::Attrs>();
        if (last.a != MatrixOperation::kNone || last.b == MatrixOperation::kVector)
            return false;
        ir::Node* shuffle = merging(product);
        if (!shuffle)
            return false;
        core_ = {softmax, product, shuffle};
        if (softmax != product->inputs[0]->producer)
            core_.push_back(product->inputs[0]->producer);
        ir::Node* first = scores(softmax->inputs[0]);
        if (!first)
            return false;
        DataType const type = first->inputs[0]->type;
        if (product->inputs[1]->type != type || product->outputs[0]->type != type || !takeMask(type))
            return false;
        auto const& a = first->attrsAs<ops::matrix_multiply::Attrs>();
        if (a.a == MatrixOperation::kVector || a.b == MatrixOperation::kVector)
            return false;
        ir::Shape const& s = first->outputs[0]->shape;
        batch_ = s[0];
        rows_ = s[2];
        columns_ = s[3];
        if (!s[1].isConst() || !product->outputs[0]->shape[3].isConst() || !isFloating(first->inputs[0]->type) ||
            batch_.is(0) || rows_.is(0) || columns_.is(0))
            return false;
        attrs.heads = s[1].value();
        attrs.valueSize = product->outputs[0]->shape[3].value();
        ir::Value* q = withoutFactor(first->inputs[0]);
        ir::Value* k = withoutFactor(first->inputs[1]);
        ir::Dim const size = q->rank() == 4 ? q->shape[a.a == MatrixOperation::kTranspose ? 2 : 3] : ir::Dim(-1);
        if (!size.isConst())
            return false;
        attrs.size = size.value();
        // What the transpose operations are written as turns over.
        bool const qTurned = a.a == MatrixOperation::kTranspose, kTurned = a.b == MatrixOperation::kNone;
        bool const vTurned = last.b == MatrixOperation::kTranspose;
        return operand(q, qTurned, rows_, attrs.size, attrs.q) && operand(k, kTurned, columns_, attrs.size, attrs.k) &&
               operand(product->inputs[1], vTurned, columns_, attrs.valueSize, attrs.v) && std::isfinite(attrs.scale);
    }

    Result<bool> fuse()
    {
        std::vector<ir::Node*> nodes = core_;
        sortNodes(g_, nodes);
        if (!canFuse(g_, nodes))
            return false;
        nodes.insert(nodes.end(), moved_.begin(), moved_.end());
        sortNodes(g_, nodes);
        for (ir::Node const* n : moved_)
            if (!canJoin(*n, *core_[1]))
                return false;
        std::vector<FusedInput> inputs;
        for (Operand const& o : operands_) {
            ir::Value* v = o.source;
            if (!(v->shape == o.shape)) {
                // Right behind its maker, so that it can be shared.
                int const position = v->producer ? g_.positionOf(v->producer) + 1 : 0;
                TW_ASSIGN(v, addReshape(g_, v, o.shape, position));
                if (!v)
                    return false;
            }
            inputs.push_back({v, o.source});
        }
        if (mask_)
            inputs.push_back({mask_, original_});
        if (keep_)
            inputs.push_back({keep_, keep_});
        ir::Node* const cast = mask_ != original_ ? original_->producer : nullptr;
        TW_ASSIGN(ir::Node * n, fuseNodes(g_, nodes, ops::attention::def(), attrs.clone(), inputs));
        if (n && cast && g_.useCount(cast->outputs[0]) == 0)
            g_.eraseNode(cast);
        return n != nullptr;
    }

private:
    struct Operand
    {
        ir::Value* source;
        ir::Shape shape; // that the node wants
    };

    ir::Graph& g_;
    bool refittable_;
    std::vector<ir::Node*> core_;  // what computes: nobody else may read it
    std::vector<ir::Node*> moved_; // what moves q, k and v
    std::vector<Operand> operands_;
    ir::Value *mask_ = nullptr, *keep_ = nullptr;
    ir::Value* original_ = nullptr; // of the mask, before it had the type of q
    ir::Dim batch_, rows_, columns_;
    ops::attention::Attrs attrs;

    // The shuffle behind the last product that puts the heads of a row side by side.
    ir::Node* merging(ir::Node const* product) const
    {
        ir::Node* found = nullptr;
        for (auto const& n : g_.nodes)
            if (std::find(n->inputs.begin(), n->inputs.end(), product->outputs[0]) != n->inputs.end()) {
                if (found)
                    return nullptr;
                found = n.get();
            }
        if (!found || found->op != &ops::shuffle::def() || (found->inputs.size() > 1 && found->inputs[1]))
            return nullptr;
        auto const& a = found->attrsAs<ops::shuffle::Attrs>();
        std::vector<int64_t> const wanted{0, 2, 1, 3};
        bool const first = a.firstTranspose == wanted && a.secondTranspose.empty();
        bool const second = !a.hasReshape && a.secondTranspose == wanted && a.firstTranspose.empty();
        return first || second ? found : nullptr;
    }

    bool isMask(ir::Value const& m) const
    {
        ir::Shape const& s = m.shape;
        return s.size() == 4 && s[3] == scores_[3] && (s[0].is(1) || s[0] == scores_[0]) &&
               (s[1].is(1) || s[1] == scores_[1]) && (s[2].is(1) || s[2] == scores_[2]);
    }
    ir::Shape scores_;

    // From the softmax's input back to the product of q and k; collects mask, condition and factor.
    ir::Node* scores(ir::Value* v)
    {
        scores_ = v->shape;
        for (bool factorSeen = false;;) {
            ir::Node* n = v->producer;
            if (!n || v->quantization || !(v->shape == scores_))
                return nullptr;
            core_.push_back(n);
            if (n->op == &ops::matrix_multiply::def())
                return n;
            if (isCast(n)) {
                v = n->inputs[0];
            } else if (is(n, Operation::kSum) && !mask_ && !keep_ && !factorSeen) {
                int const at = isMask(*n->inputs[1]) && !isScores(n->inputs[1]) ? 1 : 0;
                mask_ = n->inputs[size_t(at)];
                v = n->inputs[size_t(1 - at)];
                if (!isMask(*mask_) || mask_->type != v->type)
                    return nullptr;
            } else if (n->op == &ops::select::def() && !keep_ && !factorSeen) {
                auto const whenFalse = numberOf(n->inputs[2], refittable_),
                           whenTrue = numberOf(n->inputs[1], refittable_);
                keep_ = n->inputs[0];
                if ((!whenFalse && !whenTrue) || !isMask(*keep_))
                    return nullptr;
                attrs.keepInverted = !whenFalse;
                attrs.fill = whenFalse ? *whenFalse : *whenTrue;
                if (std::isnan(attrs.fill))
                    return nullptr;
                v = n->inputs[whenFalse ? 1 : 2];
            } else if (ir::Value* from = scaled(n)) {
                factorSeen = true;
                v = from;
            } else {
                return nullptr;
            }
        }
    }

    // The mask in the type of q, k and v: what an f32 one was converted from.
    bool takeMask(DataType type)
    {
        original_ = mask_;
        if (mask_ && mask_->type != type && isCast(mask_->producer))
            mask_ = mask_->producer->inputs[0];
        return !mask_ || mask_->type == type;
    }

    // Both operands of a sum may have the shape of the scores: the scores are what a product leads to.
    static bool isScores(ir::Value const* v)
    {
        for (int i = 0; i < kMostNodes && v && v->producer; ++i) {
            ir::Node const* n = v->producer;
            if (n->op == &ops::matrix_multiply::def())
                return true;
            if (n->op != &ops::elementwise::def() && n->op != &ops::select::def() && !isCast(n))
                return false;
            v = n->inputs[n->op == &ops::select::def() ? 1 : 0];
        }
        return false;
    }

    // The value that `n` multiplies with a number, which goes into the scale; null when it does something else.
    ir::Value* scaled(ir::Node const* n)
    {
        if (is(n, Operation::kProd)) {
            for (size_t i : {1, 0})
                if (auto f = numberOf(n->inputs[i], refittable_);
                    f && n->inputs[1 - i]->shape == n->outputs[0]->shape) {
                    attrs.scale *= *f;
                    return n->inputs[1 - i];
                }
        } else if (is(n, Operation::kDiv) && n->inputs[0]->shape == n->outputs[0]->shape) {
            if (auto f = numberOf(n->inputs[1], refittable_); f && *f != 0) {
                attrs.scale /= *f;
                return n->inputs[0];
            }
        }
        return nullptr;
    }

    // Factors in front of the product, before or behind what moves the operand (with one reader each).
    ir::Value* withoutFactor(ir::Value* v)
    {
        ir::Node* n = onlyProducer(g_, v);
        ir::Value* from = n ? scaled(n) : nullptr;
        if (!from)
            return v;
        core_.push_back(n);
        return from;
    }

    // Takes the deepest view that the node can read.
    bool operand(ir::Value* v, bool turned, ir::Dim const& rows, int64_t size, ops::attention::Operand& o)
    {
        if (v->rank() != 4)
            return false;
        ir::Shape const wanted{batch_, attrs.heads, rows, size};
        for (int depth = kMostNodes; depth >= 0; --depth) {
            StridedView view = viewOf(v, depth);
            if (int(view.nodes.size()) < depth)
                depth = int(view.nodes.size());
            if (turned)
                permute(view, {0, 1, 3, 2});
            if (!(view.sizes == wanted) || !(view.strides[3].is(1) || size == 1))
                continue;
            auto const shape = shapeFor(view, o);
            if (!shape)
                continue;
            operands_.push_back({view.source, *shape});
            moved_.insert(moved_.end(), view.nodes.begin(), view.nodes.end());
            return true;
        }
        return false;
    }

    // The shape under which the node can read a view's source.
    std::optional<ir::Shape> shapeFor(StridedView const& view, ops::attention::Operand& o) const
    {
        ir::Dim const rows = view.sizes[2], &rowStride = view.strides[2], &headStride = view.strides[1];
        int64_t const size = view.sizes[3].value();
        ir::Dim const total = volume(view.source->shape);
        bool const oneHead = attrs.heads == 1;
        if (rowStride.isConst() && !rows.is(1) && (headStride.isConst() || oneHead)) {
            o.offset = view.offset;
            o.headStride = oneHead ? 0 : headStride.value();
            int64_t const width = rowStride.value();
            int64_t const end = ir::addSat(ir::addSat(o.offset, ir::mulSat(attrs.heads - 1, o.headStride)), size);
            bool const batches = batch_.is(1) || view.strides[0] == rows * ir::Dim(width);
            if (o.headStride >= 0 && end <= width && width <= INT32_MAX && batches &&
                total == batch_ * rows * ir::Dim(width))
                return ir::Shape{batch_, rows, width};
        }
        bool const contiguous = view.offset == 0 && (rowStride == ir::Dim(size) || rows.is(1)) &&
                                (oneHead || headStride == rows * ir::Dim(size)) &&
                                (batch_.is(1) || view.strides[0] == ir::Dim(attrs.heads) * rows * ir::Dim(size));
        o = {};
        if (contiguous && total == volume(view.sizes))
            return view.sizes;
        return std::nullopt;
    }
};

} // namespace

Result<bool> fuseAttention(ir::Graph& g, PassContext const& ctx)
{
    std::vector<ir::Node*> products;
    for (auto const& n : g.nodes)
        if (n->op == &ops::matrix_multiply::def() && softmaxOf(n.get()))
            products.push_back(n.get());
    bool changed = false;
    for (ir::Node* product : products) {
        Match m(g, ctx.refittable);
        if (!m.from(product))
            continue;
        TW_ASSIGN(bool const fused, m.fuse());
        changed = changed || fused;
    }
    if (changed)
        g.eraseUnusedValues();
    return changed;
}

} // namespace tw::passes
