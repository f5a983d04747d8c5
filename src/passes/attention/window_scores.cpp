// SPDX-License-Identifier: Apache-2.0
// Gives scores of attention inside windows the form that fuse_attention takes: one product, one sum with one mask.
//   softmax(reshape(reshape(s + b) + m))  ->  softmax(s + (b + reshape(m)))      s [A W,heads,Si,Sj], m [1,W,1,Si,Sj]
//   softmax(q k' c + ..)                  ->  softmax((q c) k' + ..)             c [1,heads,1,1], a factor for each head
// Exporters write the first for windows that are shifted (Swin): b says how far apart two pixels are, m which of them were
// neighbours before the shift, an image's windows being a dimension of their own for that. Both are constants, so is their sum.
// The second is what a learned temperature is (Swin V2): queries have fewer columns than scores. Any form. Stands with the passes
// that run until nothing changes, as fold_constants adds what it leaves. Leaves alone: scores that others read, wishes of the
// user, masks that would have to be repeated for batches that are not known or to more elements than kMostElements.
#include "ops/elementwise/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/slice/op.h"
#include "ops/softmax/op.h"
#include "passes/attention/attention.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/rewrite.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using Operation = ops::elementwise::Operation;

constexpr int64_t kMostElements = int64_t(4) << 20; // of a mask for all windows of all images: 16 MiB
constexpr int kMostNodes = 6;                       // between a softmax and the product

bool isSoftmaxOfRows(ir::Node const& n)
{
    return n.op == &ops::softmax::def() && n.outputs[0]->rank() == 4 &&
           n.attrsAs<ops::softmax::Attrs>().axis == n.outputs[0]->rank() - 1;
}

// Elements where all dimensions are numbers; -1: not known, or more than kMostElements.
int64_t elements(ir::Shape const& s)
{
    int64_t n = 1;
    for (ir::Dim const& d : s)
        if (!d.isConst() || (n *= d.value()) > kMostElements)
            return -1;
    return n;
}

// A sum of scores of the shape of `v` and of something that is broadcast: where the scores are; -1: `n` is none.
int scoresOf(ir::Node const* n, ir::Value const& v)
{
    if (!is(n, Operation::kSum))
        return -1;
    for (int i : {0, 1})
        if (n->inputs[size_t(i)]->shape == v.shape && !isScores(n->inputs[size_t(1 - i)]))
            return i;
    return -1;
}

struct ShiftedWindows
{
    ir::Node *apart = nullptr, *sum = nullptr, *together = nullptr; // what is taken away
    ir::Value* mask = nullptr;                                      // [A or 1, W or 1, heads or 1, Si or 1, Sj or 1]
    ir::Value* scores = nullptr;                                    // in front of `apart`
};

std::optional<ShiftedWindows> shiftedWindows(ir::Graph const& g, ir::Node const& softmax)
{
    ShiftedWindows w;
    w.together = onlyProducer(g, softmax.inputs[0]);
    if (!isReshape(w.together))
        return std::nullopt;
    w.sum = onlyProducer(g, w.together->inputs[0]);
    if (!is(w.sum, Operation::kSum) || w.sum->outputs[0]->rank() != 5)
        return std::nullopt;
    for (size_t i : {0, 1}) {
        ir::Node* const n = onlyProducer(g, w.sum->inputs[i]);
        if (!isReshape(n) || !(n->inputs[0]->shape == softmax.inputs[0]->shape) ||
            !(n->outputs[0]->shape == w.sum->outputs[0]->shape) || !w.sum->inputs[1 - i]->isConstant())
            continue;
        w.apart = n;
        w.scores = n->inputs[0];
        w.mask = w.sum->inputs[1 - i];
    }
    if (!w.apart || hasWish(*w.apart) || hasWish(*w.sum) || hasWish(*w.together))
        return std::nullopt;
    ir::Shape const &five = w.sum->outputs[0]->shape, &four = w.scores->shape;
    for (size_t d : {1, 2, 3})
        if (!(four[d] == five[d + 1]))
            return std::nullopt;
    return w;
}

// The mask as [A W or 1, heads or 1, Si or 1, Sj], repeated where it has to be; null: that is too large, or not known.
Result<ir::Value*> maskOfAll(ir::Graph& g, ShiftedWindows const& w, int at)
{
    ir::Value* m = w.mask;
    ir::Shape const& five = w.sum->outputs[0]->shape;
    ir::Shape whole = m->shape;
    if (!whole[0].is(1) || !whole[1].is(1)) {
        whole[0] = five[0];
        whole[1] = five[1];
    }
    whole[4] = five[4];
    if (elements(whole) < 0)
        return static_cast<ir::Value*>(nullptr);
    if (!(whole == m->shape)) {
        ops::slice::Attrs a;
        for (size_t d = 0; d < whole.size(); ++d) {
            a.start.push_back(0);
            a.size.push_back(whole[d].value());
            a.stride.push_back(whole[d] == m->shape[d] ? 1 : 0);
        }
        TW_ASSIGN(ir::Node * n, g.addNode(ops::slice::def(), a.clone(), {m}, w.sum->name + ".repeated", {}, at));
        m = n->outputs[0];
    }
    return addReshape(g, m, {whole[0] * whole[1], whole[2], whole[3], whole[4]}, m->producer ? at + 1 : at);
}

// Of a bias [1 or A W, heads or 1, Si or 1, Sj or 1] and the mask of all windows.
ir::Shape joinedShape(ir::Shape const& bias, ShiftedWindows const& w)
{
    ir::Shape const& m = w.mask->shape;
    ir::Dim const windows = m[0].is(1) && m[1].is(1) ? ir::Dim(1) : w.scores->shape[0];
    auto larger = [](ir::Dim const& a, ir::Dim const& b) { return a.is(1) ? b : a; };
    return {larger(bias[0], windows), larger(bias[1], m[2]), larger(bias[2], m[3]), larger(bias[3], m[4])};
}

Result<bool> joinMasks(ir::Graph& g, ir::Node& softmax)
{
    auto const w = shiftedWindows(g, softmax);
    if (!w)
        return false;
    // The sum in front, whose other operand takes the mask in.
    ir::Node* const first = onlyProducer(g, w->scores);
    int const scoresAt = scoresOf(first, *w->scores);
    bool const joins = scoresAt >= 0 && !hasWish(*first) && first->inputs[size_t(1 - scoresAt)]->isConstant() &&
                       first->inputs[size_t(1 - scoresAt)]->type == w->mask->type;
    ir::Value* const bias = joins ? first->inputs[size_t(1 - scoresAt)] : nullptr;
    if (bias && elements(joinedShape(bias->shape, *w)) < 0)
        return false;
    TW_ASSIGN(ir::Value * mask, maskOfAll(g, *w, g.positionOf(joins ? first : w->apart)));
    if (!mask)
        return false;
    ops::elementwise::Attrs const sum(Operation::kSum);
    ir::Value* y = w->scores;
    if (joins) {
        TW_ASSIGN(ir::Node * both,
                  g.addNode(ops::elementwise::def(), sum.clone(), {bias, mask}, w->sum->name, {}, g.positionOf(first)));
        first->inputs[size_t(1 - scoresAt)] = both->outputs[0];
        TW_TRY(g.inferNode(*first));
        joinOrigins(*first, *first, *w->sum);
    } else {
        TW_ASSIGN(ir::Node * n, g.addNode(ops::elementwise::def(), sum.clone(), {y, mask}, w->sum->name, {},
                                          g.positionOf(w->together)));
        takePlaceOf(*n, *w->sum);
        y = n->outputs[0];
    }
    if (!replaceValue(g, w->together->outputs[0], y))
        return false;
    g.eraseNode(w->together);
    g.eraseNode(w->sum);
    g.eraseNode(w->apart);
    return true;
}

// A number for each head: [1 or B, heads, 1, 1].
bool isFactorOfHeads(ir::Value const& c)
{
    return c.isConstant() && c.rank() == 4 && c.shape[2].is(1) && c.shape[3].is(1) && elements(c.shape) > 1;
}

Result<bool> moveFactor(ir::Graph& g, ir::Node& softmax)
{
    ir::Value* v = softmax.inputs[0];
    for (int i = 0; i < kMostNodes; ++i) {
        ir::Node* const n = onlyProducer(g, v);
        if (!n || hasWish(*n))
            return false;
        if (is(n, Operation::kProd)) {
            size_t const at = isFactorOfHeads(*n->inputs[1]) ? 1 : 0;
            ir::Node* const product = onlyProducer(g, n->inputs[1 - at]);
            if (!isFactorOfHeads(*n->inputs[at]) || !product || !ops::matrix_multiply::isBareProduct(*product) ||
                hasWish(*product) || !(n->outputs[0]->shape == n->inputs[1 - at]->shape))
                return false;
            auto const& a = product->attrsAs<ops::matrix_multiply::Attrs>();
            ir::Value* const q = product->inputs[0];
            ir::Dim const &size = q->shape.back(), &columns = v->shape.back();
            if (a.a != ops::matrix_multiply::MatrixOperation::kNone || q->rank() != 4 || !size.isConst() ||
                (columns.isConst() && columns.value() < size.value()) || q->type != n->inputs[at]->type)
                return false;
            TW_ASSIGN(ir::Node * scaled, g.addNode(ops::elementwise::def(), n->attrs->clone(), {q, n->inputs[at]},
                                                   n->name, {}, g.positionOf(product)));
            if (!(scaled->outputs[0]->shape == q->shape) || !replaceValue(g, n->outputs[0], product->outputs[0])) {
                g.eraseNode(scaled);
                return false;
            }
            takePlaceOf(*scaled, *n);
            product->inputs[0] = scaled->outputs[0];
            TW_TRY(g.inferNode(*product));
            g.eraseNode(n);
            return true;
        }
        int const at = scoresOf(n, *v);
        if (at < 0)
            return false;
        v = n->inputs[size_t(at)];
    }
    return false;
}

} // namespace

Result<bool> windowScores(ir::Graph& g, PassContext const&)
{
    return rewriteEach(g, isSoftmaxOfRows, [&](ir::Node& softmax) -> Result<bool> {
        TW_ASSIGN(bool const joined, joinMasks(g, softmax));
        TW_ASSIGN(bool const moved, moveFactor(g, softmax));
        return joined || moved;
    });
}

} // namespace tw::passes
