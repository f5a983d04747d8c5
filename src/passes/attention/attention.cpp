// SPDX-License-Identifier: Apache-2.0
#include "passes/attention/attention.h"

#include <algorithm>
#include <cmath>

#include "ir/op_def.h"
#include "ops/activation/op.h"
#include "ops/attention/op.h"
#include "ops/attention_guard/op.h"
#include "ops/dequantize/op.h"
#include "ops/elementwise/op.h"
#include "ops/gather/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/reduce/op.h"
#include "ops/select/op.h"
#include "ops/shuffle/op.h"
#include "ops/softmax/op.h"
#include "ops/unary/op.h"
#include "passes/fuse_nodes.h"
#include "passes/node_kinds.h"
#include "passes/quantization/quantization.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using Operation = ops::elementwise::Operation;

constexpr int kMostBetween = 8, kMostBefore = 8; // nodes between softmax and product

bool isEqualToItself(ir::Node const* n)
{
    return is(n, Operation::kEqual) && n->inputs[0] == n->inputs[1];
}

// `n` is the selection.
std::optional<NanGuard> guardOf(ir::Node* n, ir::Node* reader)
{
    if (n->op != &ops::select::def())
        return std::nullopt;
    NanGuard guard;
    guard.nodes = {n};
    guard.reader = reader;
    ir::Node* test = n->inputs[0]->producer;
    bool const isNot = is(test, ops::unary::Operation::kNot);
    if (isNot) {
        guard.nodes.push_back(test);
        test = test->inputs[0]->producer;
    }
    guard.weights = n->inputs[isNot ? 2 : 1];
    ir::Value const* zero = n->inputs[isNot ? 1 : 2];
    if (!isEqualToItself(test) || test->inputs[0] != guard.weights || !zero->isConstant() || !allEqual(zero, 0))
        return std::nullopt;
    guard.nodes.push_back(test);
    return guard;
}

} // namespace

bool hasRowsFirst(ir::Node const& shuffle)
{
    auto const& a = shuffle.attrsAs<ops::shuffle::Attrs>();
    auto const& wanted = shuffle.inputs[0]->rank() == 4 ? kRowsFirst : kRowsOfAllFirst;
    return (a.firstTranspose == wanted && a.secondTranspose.empty()) ||
           (!a.hasReshape && a.secondTranspose == wanted && a.firstTranspose.empty());
}

bool joinsHeads(ir::Shape const& four, ir::Shape const& three)
{
    return four.size() == 4 && three.size() == 3 && four[0] * four[1] == three[0] && four[2] == three[1] &&
           four[3] == three[2];
}

ir::Shape beforeTranspose(ir::Node const& shuffle)
{
    return unpermuted(shuffle.outputs[0]->shape, shuffle.attrsAs<ops::shuffle::Attrs>().secondTranspose);
}

std::optional<RoundingPair> roundingPairOf(ir::Node* n, recipe::Recipes const* refit)
{
    auto const last = n ? dequantizedOf(n->outputs[0]) : std::nullopt;
    if (!last || !last->isPerTensor())
        return std::nullopt;
    RoundingPair pair{{n}};
    ir::Node* before = last->integers->producer;
    for (; isReshape(before); before = before->inputs[0]->producer)
        pair.nodes.push_back(before);
    auto const step = numberOf(last->scale, refit);
    if (!isQuantize(before) || !isPerTensor(*before) || !step || !haveSameScale(*before->inputs[1], *last->scale))
        return std::nullopt;
    pair.nodes.push_back(before);
    pair.step = *step;
    return pair;
}

bool isScores(ir::Value const* v)
{
    for (int i = 0; i < kMostBefore && v && v->producer; ++i) {
        ir::Node const* n = v->producer;
        if (ops::matrix_multiply::isBareProduct(*n))
            return true;
        if (n->op != &ops::elementwise::def() && n->op != &ops::select::def() && !isCast(n) && !isReshape(n) &&
            !isQuantize(n) && !isDequantize(n))
            return false;
        v = n->inputs[n->op == &ops::select::def() ? 1 : 0];
    }
    return false;
}

std::optional<ScoreCap> scoreCapOf(ir::Node const* n, recipe::Recipes const* refit)
{
    if (!is(n, Operation::kProd))
        return std::nullopt;
    for (ir::Value const* v : n->inputs)
        if (ir::Node* const m = v->producer;
            m && m->op == &ops::activation::def() &&
            m->attrsAs<ops::activation::Attrs>().kind == ops::activation::Kind::kTanh) {
            auto const number = numberOf(otherInput(n, v), refit);
            if (number && std::isfinite(*number) && *number > 0)
                return ScoreCap{m, *number};
        }
    return std::nullopt;
}

ir::Value* scaledBy(ir::Node const* n, recipe::Recipes const* refit, double& scale)
{
    if (is(n, Operation::kProd)) {
        for (size_t i : {1, 0})
            if (auto f = numberOf(n->inputs[i], refit); f && n->inputs[1 - i]->shape == n->outputs[0]->shape) {
                scale *= *f;
                return n->inputs[1 - i];
            }
    } else if (is(n, Operation::kDiv) && n->inputs[0]->shape == n->outputs[0]->shape) {
        if (auto f = numberOf(n->inputs[1], refit); f && *f != 0) {
            scale /= *f;
            return n->inputs[0];
        }
    }
    return nullptr;
}

AttentionWeights weightsOf(ir::Node* product, recipe::Recipes const* refit)
{
    AttentionWeights w;
    ir::Node* reader = product;
    ir::Value* v = product->inputs[0];
    for (int i = 0; i < kMostBetween; ++i) {
        ir::Node* const n = v->producer;
        if (!n)
            return {};
        if (n->op == &ops::softmax::def()) {
            w.softmax = n;
            return w;
        }
        if (isCast(n) || isReshape(n)) { // a network in FP16 may compute scores or softmax in f32
            w.between.push_back(n);
            reader = n;
            v = n->inputs[0];
        } else if (auto const pair = w.step == 0 ? roundingPairOf(n, refit) : std::nullopt) {
            w.between.insert(w.between.end(), pair->nodes.begin(), pair->nodes.end());
            w.step = pair->step;
            reader = pair->nodes.back();
            v = pair->from();
        } else if (auto guard = w.guard ? std::nullopt : guardOf(n, reader)) {
            w.guard = guard;
            v = guard->weights; // what the guard reads
        } else {
            return {};
        }
    }
    return {};
}

Result<ir::Value*> transposedTwice(ir::Graph& g, ir::Value* v, std::vector<int64_t> const& permutation)
{
    int const at = v->producer ? g.positionOf(v->producer) + 1 : 0;
    std::string const name = v->name + ".turned";
    for (int i = 0; i < 2; ++i) {
        ops::shuffle::Attrs a;
        a.firstTranspose = permutation;
        TW_ASSIGN(ir::Node * n, g.addNode(ops::shuffle::def(), a.clone(), {v}, name, {}, at + i));
        if (v->producer) {
            n->layers = v->producer->layers;
            n->device = v->producer->device;
        }
        v = n->outputs[0];
    }
    return v;
}

void putBehind(ir::Graph& g, ir::Value* v, ir::Value* after, std::vector<ir::Node*> const& readers)
{
    auto inputs = mapped<std::vector<ir::Value*>>(readers, [&](ir::Node const* n) { return n->inputs; });
    g.replaceAllUses(v, after);
    for (size_t i = 0; i < readers.size(); ++i)
        readers[i]->inputs = inputs[i];
    std::swap(v->name, after->name);
}

Result<void> guardResult(ir::Graph& g, ir::Node& attention, NanGuard const& guard)
{
    auto const& a = attention.attrsAs<ops::attention::Attrs>();
    ir::Value* const y = attention.outputs[0];
    ops::attention_guard::Attrs of;
    of.heads = a.heads;
    of.valueSize = a.valueSize;
    of.headsPerKey = a.headsPerKey;
    of.v = a.v;
    of.rowsFirst = a.rowsFirst;
    TW_ASSIGN(ir::Node * n, g.addNode(ops::attention_guard::def(), of.clone(), {y, attention.inputs[2]},
                                      attention.name + ".guard", {}, g.positionOf(&attention) + 1));
    n->layers = guard.nodes[0]->layers;
    n->device = attention.device;
    putBehind(g, y, n->outputs[0], {n});
    for (ir::Node* gone : guard.nodes)
        if (g.useCount(gone->outputs[0]) == 0)
            g.eraseNode(gone);
    return {};
}

namespace {

// The shape under which the node can read a view's source.
std::optional<ir::Shape> shapeFor(StridedView const& view, ops::attention::Operand& o)
{
    ir::Shape const sizes = view.sizes();
    ir::Dim const batch = sizes[0], rows = sizes[2], batchStride = view.stride(0), rowStride = view.stride(2),
                  headStride = view.stride(1);
    int64_t const heads = sizes[1].value(), size = sizes[3].value();
    ir::Dim const total = volume(view.source->shape);
    bool const oneHead = heads == 1;
    if (oneHead && view.source->shape == sizes &&
        isInOrder(view, sizes)) { // as it is: a cache that is in pages has four dimensions
        o = {};
        return sizes;
    }
    if (rowStride.isConst() && !rows.is(1) && (headStride.isConst() || oneHead)) {
        o.offset = view.offset;
        o.headStride = oneHead ? 0 : headStride.value();
        int64_t const width = rowStride.value();
        int64_t const end = ir::addSat(ir::addSat(o.offset, ir::mulSat(heads - 1, o.headStride)), size);
        bool const batches = batch.is(1) || batchStride == rows * ir::Dim(width);
        if (o.headStride >= (oneHead ? 0 : 1) && end <= width && width <= INT32_MAX && batches &&
            total == batch * rows * ir::Dim(width))
            return ir::Shape{batch, rows, width};
    }
    // Rows of all batches one behind the other.
    if (batchStride.isConst() && !batch.is(1) && (headStride.isConst() || oneHead)) {
        int64_t const width = batchStride.value();
        o = {view.offset, oneHead ? 0 : headStride.value(), true};
        int64_t const end = ir::addSat(ir::addSat(o.offset, ir::mulSat(heads - 1, o.headStride)), size);
        if (o.headStride >= (oneHead ? 0 : 1) && end <= width && width <= INT32_MAX &&
            (rows.is(1) || rowStride == batch * ir::Dim(width)) && total == batch * rows * ir::Dim(width))
            return ir::Shape{rows, batch, width};
    }
    bool const contiguous = view.offset == 0 && (rowStride == ir::Dim(size) || rows.is(1)) &&
                            (oneHead || headStride == rows * ir::Dim(size)) &&
                            (batch.is(1) || batchStride == ir::Dim(heads) * rows * ir::Dim(size));
    o = {};
    if (contiguous && total == volume(sizes))
        return sizes;
    return std::nullopt;
}

std::optional<AttentionOperand> fitted(StridedView view, bool turned, ir::Shape const& wanted, bool shared)
{
    AttentionOperand found;
    if (turned)
        permute(view, {0, 1, 3, 2});
    if (auto& heads = view.dimensions[1]; heads.empty() && !wanted[1].is(1)) // a product repeats its one head
        heads = {{wanted[1], 0}};
    if (!(view.sizes() == wanted) || !(view.stride(3).is(1) || wanted[3].is(1)))
        return std::nullopt;
    if (auto& heads = view.dimensions[1]; shared) {
        if (heads.empty() || !heads.back().stride.is(0) || !heads.back().size.isConst())
            return std::nullopt;
        found.perKey = heads.back().size.value();
        heads.pop_back();
    }
    auto const shape = shapeFor(view, found.operand);
    if (!shape)
        return std::nullopt;
    found.view = std::move(view);
    found.shape = *shape;
    return found;
}

// Besides what it moves, and what is known.
bool readsSizes(ir::Node const* n)
{
    return std::any_of(n->inputs.begin() + 1, n->inputs.end(),
                       [](ir::Value const* v) { return v && !v->isConstant(); });
}

// What `fit` makes of the deepest view through `least` nodes or more that it can do something with.
template <class Fit>
std::optional<AttentionOperand> deepest(ir::Value* v, int least, Fit const& fit)
{
    for (int depth = kMostOperandNodes; depth >= least; --depth) {
        StridedView view = viewOf(v, depth);
        depth = std::min(depth, int(view.nodes.size()));
        if (depth < least)
            break;
        if (auto found = fit(std::move(view)))
            return found;
    }
    return std::nullopt;
}

} // namespace

std::optional<AttentionOperand> operandOf(ir::Value* v, bool turned, ir::Shape const& wanted, bool shared)
{
    return deepest(v, 0, [&](StridedView view) -> std::optional<AttentionOperand> {
        if (std::ranges::any_of(view.nodes, readsSizes)) // which the node has no place for
            return std::nullopt;
        if (v->rank() != 4 && !reshape(view, {wanted[0], wanted[1], v->shape[1], v->shape[2]}))
            return std::nullopt;
        return fitted(std::move(view), turned, wanted, shared);
    });
}

std::optional<AttentionOperand> operandOfRows(ir::Value* v, int64_t heads, int64_t size)
{
    return deepest(v, 1, [&](StridedView view) -> std::optional<AttentionOperand> {
        if (!reshape(view, {v->shape[0], v->shape[1], heads, size}))
            return std::nullopt;
        permute(view, kHeadsInside);
        return fitted(std::move(view), false, {v->shape[0], heads, v->shape[1], size}, false);
    });
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
        std::ranges::replace(inputs, integers, floats);
        integers = n->outputs[0];
        TW_ASSIGN(ir::Node * moved, addAlike(g, *n, std::move(inputs), g.positionOf(n) + 1));
        floats = moved->outputs[0];
        floats->name += ".floats";
        made.moving.push_back(moved);
    }
    return made;
}

} // namespace tw::passes
