// SPDX-License-Identifier: Apache-2.0
// Makes one attention node of what exporters write for it:
//   s = q k' ; a factor on s, q or k; c tanh(s / c); where(condition, s, number) or where(condition, number, s); s + mask
//   a quantize and a dequantize by one step behind any of these, behind the mask and behind p: the node rounds so, too
//   p = softmax(s), perhaps where(isnan(p), 0, p);  y = transpose(p v, [0,2,1,3]), or [2,0,1,3] for [S, B, columns], and perhaps
//   a reshape
//   p = softmax(s, sinks) without the last weight (sinks.h)
// q, k and v are [B, heads, S, size], or [B * heads, S, size] with reshapes to the former anywhere between. The
// reshapes, transposes, slices and gathers that take them out of [B, S, columns] or [S, B, columns] (of a tensor each, or all
// three of one) are read through: the node reads the rows where they lie, heads of keys and values that several of queries share
// too, which exporters repeat. What others read too of those stays for them. Where y is not transposed like that, a
// transpose after the node puts it back. Expects Form::kCanonical. Stands before sink_reshapes and the fusions of matrix
// products. Leaves alone: scores that others read, masks that are not [B or 1,
// heads or 1, Si or 1, Sj], wishes of the user that differ, scores that are rounded twice before a mask; on CPUs weights that
// are rounded, whose product is one of INT8.
#include <algorithm>
#include <cmath>

#include "ops/attention/op.h"
#include "ops/elementwise/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/select/op.h"
#include "ops/shuffle/op.h"
#include "ops/softmax/op.h"
#include "passes/attention/attention.h"
#include "passes/attention/sinks.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/quantization/quantization.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using Operation = ops::elementwise::Operation;
using ops::matrix_multiply::MatrixOperation;

constexpr int64_t kMostUnmerged = 128; // elements of a lone head that kernels for GPUs take

class AttentionMatch
{
public:
    AttentionMatch(ir::Graph& g, PassContext const& ctx) : g_(g), refit_(ctx.recipes), cuda_(ctx.target.gpu()) {}

    // `product` is softmax(s) v.
    bool from(ir::Node* product)
    {
        weights_ = weightsOf(product, refit_);
        ir::Node* softmax = weights_.softmax;
        int const rank = product->outputs[0]->rank();
        if (!softmax || (rank != 3 && rank != 4) ||
            softmax->attrsAs<ops::softmax::Attrs>().axis != softmax->outputs[0]->rank() - 1 ||
            (weights_.step > 0 && (!cuda_ || weights_.guard || !ops::attention::isStep(weights_.step))))
            return false;
        attrs.weightStep = weights_.step;
        auto const& last = product->attrsAs<ops::matrix_multiply::Attrs>();
        if (last.a != MatrixOperation::kNone || last.b == MatrixOperation::kVector)
            return false;
        ir::Shape const& y = product->outputs[0]->shape;
        rows_ = y[size_t(rank - 2)];
        columns_ = product->inputs[0]->shape.back();
        if (!takeHeads(product))
            return false;
        core_ = {softmax, product};
        core_.insert(core_.end(), weights_.between.begin(), weights_.between.end());
        if (ir::Node* merging = mergingOf(product); merging && isSayable(*merging, y.back())) {
            core_.push_back(merging);
            attrs.rowsFirst = !batch_.is(1) && hasRowsFirst(*merging);
        } else {
            unmerged_ = product;
        }
        ir::Node* first = scores(softmax->outputs[0], softmax->inputs[0]);
        if (!first)
            return false;
        DataType const type = first->inputs[0]->type;
        if (product->inputs[1]->type != type || product->outputs[0]->type != type || !takeMask(type))
            return false;
        auto const& a = first->attrsAs<ops::matrix_multiply::Attrs>();
        if (a.a == MatrixOperation::kVector || a.b == MatrixOperation::kVector)
            return false;
        if (!y.back().isConst() || !isFloating(type) || batch_.is(0) || rows_.is(0) || columns_.is(0))
            return false;
        attrs.valueSize = y.back().value();
        ir::Value* q = withoutFactor(first->inputs[0]);
        ir::Value* k = withoutFactor(first->inputs[1]);
        ir::Dim const size =
            q->rank() < 3 ? ir::Dim(-1) : q->shape[q->shape.size() - (a.a == MatrixOperation::kTranspose ? 2 : 1)];
        if (!size.isConst() || (unmerged_ && cuda_ && size.value() > kMostUnmerged))
            return false;
        attrs.size = size.value();
        // What the transpose operations are written as turns over.
        bool const qTurned = a.a == MatrixOperation::kTranspose, kTurned = a.b == MatrixOperation::kNone;
        bool const vTurned = last.b == MatrixOperation::kTranspose;
        ir::Value* v = product->inputs[1];
        return operand(q, qTurned, rows_, attrs.size, attrs.q) &&
               (sharedHeads(k, kTurned, v, vTurned) || (operand(k, kTurned, columns_, attrs.size, attrs.k) &&
                                                        operand(v, vTurned, columns_, attrs.valueSize, attrs.v))) &&
               std::isfinite(attrs.scale) && (!attrs.roundsScores() || (attrs.scale > 0 && attrs.softcap == 0));
    }

    // `isUntidy`: there are dead nodes, or shuffles to join.
    Result<bool> fuse(bool& isUntidy)
    {
        std::vector<ir::Node*> nodes = core_;
        if (weights_.guard)
            nodes.insert(nodes.end(), weights_.guard->nodes.begin(), weights_.guard->nodes.end());
        sortNodes(g_, nodes);
        if (!canFuse(g_, nodes))
            return false;
        for (ir::Node const* n : moved_)
            if (!canJoin(*n, *core_[1]))
                return false;
        if (unmerged_ && attrs.heads > 1) {
            isUntidy = true;
            TW_ASSIGN(bool const isMerged, merge());
            if (!isMerged)
                return false;
        }
        for (Operand& o : operands_)
            if (o.turned) {
                isUntidy = true;
                TW_TRY(turn(o));
            } else if (o.dequantize) {
                isUntidy = true;
                TW_TRY(raise(o));
            }
        nodes = core_;
        nodes.insert(nodes.end(), moved_.begin(), moved_.end());
        sortNodes(g_, nodes);
        std::vector<FusedInput> inputs;
        for (Operand const& o : operands_) {
            TW_ASSIGN(ir::Value * v, reshaped(o.source, o.shape));
            inputs.push_back({v, o.source});
        }
        for (auto const& [value, original] : {std::pair(mask_, original_), std::pair(keep_, keep_)})
            if (value) {
                TW_ASSIGN(ir::Value * v, reshaped(value, maskShape(*value)));
                inputs.push_back({v, original});
            }
        for (FusedInput const& in : inputs)
            if (!in.value)
                return false;
        if (weights_.guard)
            weights_.guard->reader->inputs[0] = weights_.guard->weights;
        ir::Node* const cast = mask_ != original_ ? original_->producer : nullptr;
        TW_ASSIGN(ir::Node * n, fuseNodes(g_, nodes, ops::attention::def(), attrs.clone(), inputs));
        if (n && cast && g_.useCount(cast->outputs[0]) == 0)
            g_.eraseNode(cast);
        if (weights_.guard && !n)
            weights_.guard->reader->inputs[0] = weights_.guard->nodes[0]->outputs[0];
        isUntidy = isUntidy || weights_.guard;
        if (weights_.guard && n)
            TW_TRY(guardResult(g_, *n, *weights_.guard));
        fused = n;
        return n != nullptr;
    }

    ir::Node* fused = nullptr; // what fuse() has made

private:
    struct Operand
    {
        ir::Value* source;
        ir::Shape shape;     // that the node wants
        bool turned = false; // rows and columns of the source
        // Of integers that `moving` takes the operand out of: the source is to be the floats, which are moved then.
        ir::Node* dequantize = nullptr;
        std::vector<ir::Node*> moving;
    };

    ir::Graph& g_;
    recipe::Recipes const* refit_;
    bool cuda_;
    AttentionWeights weights_;
    ir::Node* unmerged_ = nullptr; // the last product, where no shuffle puts the heads of a row side by side
    std::vector<ir::Node*> core_;  // what computes: nobody else may read it
    std::vector<ir::Node*> moved_; // what moves q, k and v
    std::vector<Operand> operands_;
    ir::Value *mask_ = nullptr, *keep_ = nullptr;
    ir::Value* original_ = nullptr; // of the mask, before it had the type of q
    ir::Dim batch_, rows_, columns_;
    ir::Dim all_ = -1; // batches and heads as one dimension, where something has it
    ops::attention::Attrs attrs;

    ir::Shape four(ir::Dim const& rows, ir::Dim const& columns) const { return {batch_, attrs.heads, rows, columns}; }

    // Batches and heads. Of [B * heads, S, size]: as the shuffle after the last product or a reshape of the scores
    // take them apart; where none does, each counts as a batch.
    bool takeHeads(ir::Node const* product)
    {
        ir::Shape const& y = product->outputs[0]->shape;
        auto take = [&](ir::Dim const& batch, ir::Dim const& heads) {
            batch_ = batch;
            attrs.heads = heads.isConst() ? heads.value() : -1;
            return attrs.heads > 0;
        };
        if (y.size() == 4)
            return take(y[0], y[1]);
        all_ = y[0];
        auto fits = [&](ir::Shape const& s, ir::Dim const& last) {
            return s.size() == 4 && s[0] * s[1] == all_ && s[2] == rows_ && s[3] == last;
        };
        ir::Node const* behind = onlyShuffle(product);
        if (behind) {
            auto const& a = behind->attrsAs<ops::shuffle::Attrs>();
            if (a.hasReshape && a.firstTranspose.empty() && a.secondTranspose == kHeadsInside)
                if (ir::Shape const parts = beforeTranspose(*behind); fits(parts, y[2]))
                    return take(parts[0], parts[1]);
        }
        ir::Value const* v = product->inputs[0];
        for (int i = 0; i < 2 * kMostOperandNodes && v && v->producer; ++i) {
            if (fits(v->shape, columns_))
                return take(v->shape[0], v->shape[1]);
            ir::Node const* n = v->producer;
            if (n->inputs.empty() || !n->inputs[0])
                break;
            bool const second = n->op == &ops::elementwise::def() && n->inputs[1]->shape == v->shape &&
                                !(n->inputs[0]->shape == v->shape);
            if (ops::matrix_multiply::isBareProduct(*n))
                break;
            v = n->inputs[n->op == &ops::select::def() ? (n->inputs[1]->shape == v->shape ? 1 : 2) : second];
        }
        // [B * heads, S, size] -> [S, B, heads * size] or [S * B, heads * size].
        if (ir::Dim const width = behind ? behind->outputs[0]->shape.back() : ir::Dim(-1);
            behind && behind->attrsAs<ops::shuffle::Attrs>().firstTranspose == kRowsOfAllFirst && width.isConst() &&
            y[2].isConst() && y[2].value() > 0 && width.value() > 0 && width.value() % y[2].value() == 0) {
            int64_t const heads = width.value() / y[2].value();
            ir::Dim const batch = floorDiv(all_, heads);
            if (batch * ir::Dim(heads) == all_)
                return take(batch, heads);
        }
        return take(all_, 1);
    }

    ir::Node* onlyShuffle(ir::Node const* product) const
    {
        ir::Node* n = nextOf(g_, product);
        return isShuffle(n) ? n : nullptr;
    }
    // The shuffle after the last product that puts the heads of a row side by side; null: none.
    ir::Node* mergingOf(ir::Node const* product) const
    {
        ir::Node* found = onlyShuffle(product);
        if (!found)
            return nullptr;
        auto const& a = found->attrsAs<ops::shuffle::Attrs>();
        bool is = false;
        if (product->outputs[0]->rank() == 4)
            is = (a.firstTranspose == kHeadsInside && a.secondTranspose.empty()) ||
                 (!a.hasReshape && a.secondTranspose == kHeadsInside && a.firstTranspose.empty());
        else if (a.hasReshape && a.firstTranspose.empty() && a.secondTranspose == kHeadsInside)
            is = beforeTranspose(*found) == four(rows_, product->outputs[0]->shape[2]);
        return is || hasRowsFirst(*found) ? found : nullptr;
    }
    // The node gives [B, S, columns], or [S, B, columns]: what the shuffle makes of its rows can be made of that, and back.
    // [(B S), columns] cannot where neither is known.
    bool isSayable(ir::Node const& merging, ir::Dim const& size) const
    {
        bool const turned = !batch_.is(1) && hasRowsFirst(merging);
        ir::Shape const y{turned ? rows_ : batch_, turned ? batch_ : rows_, size * ir::Dim(attrs.heads)};
        ir::Shape const& shape = merging.outputs[0]->shape;
        return shape == y || (reshapeDims(g_, shape, y) && reshapeDims(g_, y, shape));
    }
    // [B, heads, S, size] -> [B, S, heads, size] and back, after the last product; the first of them is taken in.
    Result<bool> merge()
    {
        ir::Value* y = unmerged_->outputs[0];
        ir::Shape const shape = y->shape;
        ir::Value *apart = y, *back = nullptr;
        if (shape.size() == 3) {
            TW_ASSIGN(apart, reshaped(y, four(rows_, shape[2])));
            if (!apart)
                return false;
            core_.push_back(apart->producer);
        }
        TW_ASSIGN(ir::Value * v, transposedTwice(g_, apart, kHeadsInside));
        ir::Node* const inside = v->producer->inputs[0]->producer;
        core_.push_back(inside);
        TW_ASSIGN(back, reshaped(v, shape));
        if (!back)
            return false; // what was added is dead
        putBehind(g_, y, back, {apart == y ? inside : apart->producer});
        return true;
    }

    // source -> transposed -> transposed back, which is taken in.
    Result<void> turn(Operand& o)
    {
        bool const isFour = o.source->rank() == 4;
        TW_ASSIGN(
            ir::Value * v,
            transposedTwice(g_, o.source, isFour ? std::vector<int64_t>{0, 1, 3, 2} : std::vector<int64_t>{0, 2, 1}));
        for (ir::Node* n : core_)
            std::ranges::replace(n->inputs, o.source, v);
        moved_.push_back(v->producer);
        o.source = v->producer->inputs[0];
        return {};
    }

    Result<void> raise(Operand& o)
    {
        TW_ASSIGN(RaisedDequantize const raised, raiseDequantize(g_, *o.dequantize, o.source, o.moving));
        for (ir::Node* n : core_)
            std::ranges::replace(n->inputs, o.dequantize->outputs[0], raised.result());
        moved_.insert(moved_.end(), raised.moving.begin(), raised.moving.end());
        o.source = raised.node->outputs[0];
        return {};
    }

    // `v` itself, or in the shape that is wanted, right after its maker, so that it can be shared; null: there is no
    // way to say it.
    Result<ir::Value*> reshaped(ir::Value* v, ir::Shape const& shape)
    {
        if (v->shape == shape)
            return v;
        return addReshape(g_, v, shape, v->producer ? g_.positionOf(v->producer) + 1 : 0);
    }

    // [B or 1, heads or 1, Si or 1, Sj], or the first two as one.
    bool isMask(ir::Value const& m) const
    {
        ir::Shape const& s = m.shape;
        if (s.size() == 3)
            return s[2] == columns_ && (s[0].is(1) || s[0] == all_) && (s[1].is(1) || s[1] == rows_);
        return s.size() == 4 && s[3] == columns_ && (s[0].is(1) || s[0] == batch_) &&
               (s[1].is(1) || s[1].is(attrs.heads)) && (s[2].is(1) || s[2] == rows_);
    }
    ir::Shape maskShape(ir::Value const& m) const
    {
        ir::Shape const& s = m.shape;
        if (s.size() == 4)
            return s;
        return s[0] == all_ ? four(s[1], s[2]) : ir::Shape{1, 1, s[1], s[2]};
    }
    bool isShapeOfScores(ir::Shape const& s) const
    {
        return s == four(rows_, columns_) || s == ir::Shape{all_, rows_, columns_};
    }

    // From the softmax's input back to the product of q and k; collects mask, condition and factor.
    ir::Node* scores(ir::Value const* y, ir::Value* v)
    {
        if (!isShapeOfScores(y->shape))
            return nullptr;
        for (bool factorSeen = false;;) {
            ir::Node* n = v->producer;
            if (!n || !isShapeOfScores(v->shape))
                return nullptr;
            core_.push_back(n);
            if (ops::matrix_multiply::isBareProduct(*n))
                return n;
            if (isCast(n) || isReshape(n)) {
                v = n->inputs[0];
            } else if (auto const pair = roundingPairOf(n, refit_)) {
                // Before a factor, the step of what it makes.
                double& step = mask_ || keep_ || attrs.sumStep > 0 || factorSeen ? attrs.scoreStep : attrs.sumStep;
                if (step > 0 || !ops::attention::isStep(pair->step * attrs.scale))
                    return nullptr;
                step = pair->step * attrs.scale;
                core_.insert(core_.end(), pair->nodes.begin() + 1, pair->nodes.end());
                v = pair->from();
            } else if (is(n, Operation::kSum) && !mask_ && !keep_ && !factorSeen && attrs.scoreStep == 0) {
                int const at = isMask(*n->inputs[1]) && !isScores(n->inputs[1]) ? 1 : 0;
                mask_ = n->inputs[size_t(at)];
                v = n->inputs[size_t(1 - at)];
                if (!isMask(*mask_) || mask_->type != v->type)
                    return nullptr;
            } else if (n->op == &ops::select::def() && !keep_ && !factorSeen && attrs.scoreStep == 0) {
                auto const whenFalse = numberOf(n->inputs[2], refit_), whenTrue = numberOf(n->inputs[1], refit_);
                keep_ = n->inputs[0];
                if ((!whenFalse && !whenTrue) || !isMask(*keep_))
                    return nullptr;
                attrs.keepInverted = !whenFalse;
                attrs.fill = whenFalse ? *whenFalse : *whenTrue;
                if (std::isnan(attrs.fill))
                    return nullptr;
                v = n->inputs[whenFalse ? 1 : 2];
            } else if (auto const cap = scoreCapOf(n, refit_)) {
                if (attrs.softcap > 0 || factorSeen || attrs.roundsScores())
                    return nullptr;
                attrs.softcap = attrs.scale = cap->most;
                core_.push_back(cap->tanh);
                v = cap->tanh->inputs[0];
            } else if (ir::Value* from = scaledBy(n, refit_, attrs.scale)) {
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

    // Factors before the product, before or after what moves the operand (with one reader each).
    ir::Value* withoutFactor(ir::Value* v)
    {
        ir::Node* n = onlyProducer(g_, v);
        ir::Value* from = n ? scaledBy(n, refit_, attrs.scale) : nullptr;
        if (!from)
            return v;
        core_.push_back(n);
        return from;
    }

    // `v` is behind `found` and perhaps a dequantize.
    void take(AttentionOperand const& found, ir::Value* v, ops::attention::Operand& o)
    {
        o = found.operand;
        operands_.push_back({found.view.source, found.shape});
        if (isDequantize(v->producer) && !isFloating(found.view.source->type)) {
            operands_.back().dequantize = v->producer;
            operands_.back().moving = found.view.nodes;
            return;
        }
        moved_.insert(moved_.end(), found.view.nodes.begin(), found.view.nodes.end());
    }

    // What nodes move to an operand: it, or the integers that a dequantize makes it of.
    static ir::Value* moved(ir::Value* v)
    {
        auto const d = dequantizedOf(v);
        return d && d->isPerTensor() ? d->integers : v;
    }

    // Keys and values whose heads are repeated for queries: they are read where they lie.
    bool sharedHeads(ir::Value* k, bool kTurned, ir::Value* v, bool vTurned)
    {
        auto const keys = operandOf(moved(k), kTurned, four(columns_, attrs.size), true);
        auto const values = operandOf(moved(v), vTurned, four(columns_, attrs.valueSize), true);
        if (!keys || !values || keys->perKey != values->perKey)
            return false;
        attrs.headsPerKey = keys->perKey;
        take(*keys, k, attrs.k);
        take(*values, v, attrs.v);
        return true;
    }

    // Takes the deepest view that the node can read.
    bool operand(ir::Value* v, bool turned, ir::Dim const& rows, int64_t size, ops::attention::Operand& o)
    {
        if (v->rank() != 4 && v->rank() != 3)
            return false;
        ir::Shape const wanted = four(rows, size);
        for (ir::Value* from : {moved(v), v})
            if (auto const found = operandOf(from, turned, wanted);
                found && (from == v || !found->view.nodes.empty())) {
                take(*found, v, o);
                return true;
            }
        // A transpose of its own, which joins the one that turned the operand.
        o = {};
        operands_.push_back({v, wanted, true});
        ir::Shape const& s = v->shape;
        return turned && (s == four(size, rows) || s == ir::Shape{all_, size, rows});
    }
};

} // namespace

Result<bool> fuseAttention(ir::Graph& g, PassContext const& ctx)
{
    bool isUntidy = false;
    auto fuse = [&](ir::Node& last) -> Result<ir::Node*> {
        AttentionMatch m(g, ctx);
        bool const isOne = m.from(&last);
        TW_ASSIGN(bool const isDone, isOne ? m.fuse(isUntidy) : Result<bool>(false));
        return isDone ? m.fused : nullptr;
    };
    TW_ASSIGN(bool changed, changeEach(g, ops::matrix_multiply::isBareProduct, [&](ir::Node& last) -> Result<bool> {
                  auto const sinks = sinkScoresOf(g, last);
                  isUntidy = isUntidy || sinks;
                  TW_ASSIGN(ir::Node * made, sinks ? fuseWithSinks(g, last, *sinks, fuse) : fuse(last));
                  return made != nullptr;
              }));
    if (!changed && !isUntidy)
        return false;
    g.eraseUnusedValues();
    if (isUntidy) {
        TW_ASSIGN(bool const joined, removeIdentities(g, ctx));
        TW_ASSIGN(bool const cleaned, removeDead(g, ctx));
        changed = changed || joined || cleaned;
    }
    return changed;
}

} // namespace tw::passes
