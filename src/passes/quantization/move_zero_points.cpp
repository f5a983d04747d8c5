// SPDX-License-Identifier: Apache-2.0
// Takes the zero points of quantized tensors, which importers write as sums with a number behind dequantize and in front of
// quantize, to where they cost nothing.
//   move(x + c)                         ->  move(x) + c              what movesElements() names but padding, averages
//   (x + c) + d, (x + c) + (y + d)      ->  x + (c + d), (x + y) + (c + d); sums with 0 go
//   conv(x + c, w, b)                   ->  conv(x, w, b + c sum(w))     padded: of x that is padded with -c
//   x + c times w                       ->  x w + c sum of w's columns
//   quantize(relu(x) + c, s)            ->  quantize(x + c, s)       where c is -128 s, so that quantize clamps as relu did; clip to
//                                                                    0 .. at least 255 s likewise
// Here x is a tensor of integers behind dequantize, moved or not, and w constant integers behind one. Form::kImported's passes
// run it in turn with move_quantization, which brings pairs together that sums stood between. Leaves alone: numbers that refit may
// change, wishes of the user, sums on the host, transposed convolutions and products without matrices.
#include <cmath>

#include "ops/activation/op.h"
#include "ops/convolution/op.h"
#include "ops/elementwise/op.h"
#include "ops/matrix_multiply/op.h"
#include "ops/padding/op.h"
#include "ops/pooling/op.h"
#include "ops/reduce/op.h"
#include "ops/slice/op.h"
#include "passes/fuse_nodes.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/quantization/quantization.h"
#include "passes/rewrite.h"
#include "recipe/recipes.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

using Operation = ops::elementwise::Operation;
using ops::matrix_multiply::MatrixOperation;

constexpr int kDepth = 64;         // of movements that are looked through
constexpr double kRounding = 1e-4; // of a zero point, which is a whole number of steps
constexpr double kSteps = 255;     // of INT8
constexpr size_t kMoved = 5; // nodes that a sweep goes back by behind a rewrite, which takes out some in front of it

// x + by, of x's shape.
struct Raised
{
    ir::Node* sum = nullptr;
    ir::Value* x = nullptr;
    double by = 0;
};

bool isAverage(ir::Node const& n)
{
    if (n.body || n.outputs.size() != 1)
        return false;
    if (n.op == &ops::reduce::def()) {
        auto const& a = n.attrsAs<ops::reduce::Attrs>();
        return a.kind == ops::reduce::Kind::kAvg && a.isBare();
    }
    if (n.op != &ops::pooling::def())
        return false;
    auto const& a = n.attrsAs<ops::pooling::Attrs>();
    auto const isZero = [](std::vector<int64_t> const& list) { return list == std::vector<int64_t>(list.size(), 0); };
    bool const isInside =
        a.paddingMode == ops::PaddingMode::kExplicitRoundDown && isZero(a.prePadding) && isZero(a.postPadding);
    return a.kind == ops::pooling::Kind::kAverage && (isInside || a.excludePadding);
}

// Whether f(x + c) is f(x) + c.
bool keepsSums(ir::Node const& n)
{
    if (isAverage(n))
        return true;
    bool const fills = n.op == &ops::padding::def() ||
                       (n.op == &ops::slice::def() && n.attrsAs<ops::slice::Attrs>().mode == ops::slice::Mode::kFill);
    return movesElements(n) && !fills;
}

class ZeroPoints
{
public:
    ZeroPoints(ir::Graph& g, PassContext const& ctx) : g_(g), ctx_(ctx) {}

    Result<bool> run()
    {
        bool changed = false;
        for (bool again = true; again;) {
            TW_SET(again, sweep());
            changed = changed || again;
        }
        if (changed)
            g_.eraseUnusedValues();
        return changed;
    }

private:
    // From front to back, since what reads a new sum stands behind it.
    Result<bool> sweep()
    {
        bool changed = false;
        for (size_t i = 0; i < g_.nodes.size(); ++i) {
            TW_ASSIGN(bool const isOne, rewrite(*g_.nodes[i]));
            changed = changed || isOne;
            if (isOne)
                i -= std::min(i, kMoved);
        }
        return changed;
    }

    // A sum with a number; what it is of, is asked by isOfIntegers().
    std::optional<Raised> sumOf(ir::Value const* v) const
    {
        ir::Node* const n = v ? v->producer : nullptr;
        if (!is(n, Operation::kSum) || n->body || v->host || !isFullFloat(v->type) || hasWish(*n))
            return std::nullopt;
        for (size_t i : {1, 0}) {
            auto const number = n->inputs[i]->isConstant() ? numberOf(n->inputs[i], ctx_.recipes) : std::nullopt;
            ir::Value* const x = n->inputs[1 - i];
            if (number && std::isfinite(*number) && isFullFloat(x->type) && x->shape == v->shape)
                return Raised{n, x, *number};
        }
        return std::nullopt;
    }

    bool isOfIntegers(ir::Value const* v) const
    {
        for (int depth = 0; v && depth < kDepth; ++depth) {
            if (auto const d = dequantizedOf(v))
                return d->isPerTensor();
            if (!v->producer || !keepsSums(*v->producer) || v->producer->inputs.empty())
                return false;
            v = v->producer->inputs[0];
        }
        return false;
    }

    std::optional<Raised> raisedOf(ir::Value const* v) const
    {
        auto const r = sumOf(v);
        return r && isOfIntegers(r->x) ? r : std::nullopt;
    }

    Result<bool> rewrite(ir::Node& n)
    {
        if (hasWish(n) || n.inputs.empty() || !n.inputs[0] || n.outputs.size() != 1)
            return false;
        if (isQuantize(&n))
            return withoutClamp(n);
        if (keepsSums(n))
            return behindMovement(n);
        if (is(&n, Operation::kSum) && !n.body)
            return joined(n);
        if (ops::convolution::isBareForward(n))
            return behindConvolution(n);
        if (n.op == &ops::matrix_multiply::def() && ops::matrix_multiply::isBareProduct(n))
            return behindProduct(n);
        return false;
    }

    ir::Value* number(double v, int rank, std::string const& name)
    {
        float const f = float(v);
        return g_.addConstant(name, DataType::kFloat, Extents::ones(rank), &f);
    }

    // `made` and a sum with c behind it take the place of n.
    Result<bool> replace(ir::Node& n, ir::Node& made, ir::Node const& sum, ir::Value* c)
    {
        made.outputs[0]->name += ".raw";
        TW_ASSIGN(ir::Node * after,
                  g_.addNode(ops::elementwise::def(), ops::elementwise::Attrs(Operation::kSum).clone(),
                             {made.outputs[0], c}, sum.name, {}, g_.positionOf(&made) + 1));
        takePlaceOf(*after, sum);
        return put(n, after->outputs[0], {after, &made});
    }

    // v takes the place of n's output, or what was made for it goes.
    Result<bool> put(ir::Node& n, ir::Value* v, std::vector<ir::Node*> const& made)
    {
        std::vector<ir::Value*> const read = n.inputs;
        if (!made.empty())
            v->name = n.outputs[0]->name;
        if (!(v->shape == n.outputs[0]->shape) || !replaceValue(g_, n.outputs[0], v)) {
            for (ir::Node* m : made)
                g_.eraseNode(m);
            return false;
        }
        g_.eraseNode(&n);
        for (ir::Value* input : read)
            eraseUnread(input);
        return true;
    }

    // The sum that makes v and what it is of, where nobody reads them.
    void eraseUnread(ir::Value* v)
    {
        ir::Node* const n = v ? v->producer : nullptr;
        if (!n || g_.useCount(v) != 0 || g_.isOutput(v) || (!is(n, Operation::kSum) && !isDequantize(n)))
            return;
        std::vector<ir::Value*> const read = n->inputs;
        g_.eraseNode(n);
        for (ir::Value* input : read)
            eraseUnread(input);
    }

    Result<bool> behindMovement(ir::Node& n)
    {
        if (!isFullFloat(n.outputs[0]->type))
            return false;
        std::vector<ir::Value*> inputs = n.inputs;
        std::optional<Raised> first;
        for (size_t i = 0; i < movedInputs(n); ++i) {
            auto const r = raisedOf(n.inputs[i]);
            if (!r || (first && r->by != first->by))
                return false;
            first = first ? first : r;
            inputs[i] = r->x;
        }
        TW_ASSIGN(ir::Node * moved, addAlike(g_, n, std::move(inputs), g_.positionOf(&n)));
        return replace(n, *moved, *first->sum,
                       number(first->by, moved->outputs[0]->rank(), first->sum->name + ".number"));
    }

    Result<bool> joined(ir::Node& n)
    {
        ir::Value* const y = n.outputs[0];
        if (y->host)
            return false;
        auto const outer = sumOf(y);
        if (outer && outer->by == 0)
            return isOfSums(outer->x) ? put(n, outer->x, {}) : false;
        if (outer) {
            auto const inner = sumOf(outer->x);
            if (!inner || !isOfSums(inner->x))
                return false;
            double const sum = float(inner->by + outer->by);
            double const large = std::max(std::abs(inner->by), std::abs(outer->by));
            ir::Value* const c = number(std::abs(sum) < 1e-6 * large ? 0 : sum, y->rank(), n.name + ".number");
            TW_ASSIGN(ir::Node * made,
                      g_.addNode(*n.op, n.attrs->clone(), {inner->x, c}, n.name, {}, g_.positionOf(&n)));
            joinOrigins(*made, *inner->sum, n);
            return put(n, made->outputs[0], {made});
        }
        auto const a = raisedOf(n.inputs[0]), b = raisedOf(n.inputs[1]);
        if ((!a && !b) || !(n.inputs[0]->shape == y->shape) || !(n.inputs[1]->shape == y->shape) ||
            !isFullFloat(y->type))
            return false;
        TW_ASSIGN(ir::Node * made, g_.addNode(*n.op, n.attrs->clone(), {a ? a->x : n.inputs[0], b ? b->x : n.inputs[1]},
                                              n.name, {}, g_.positionOf(&n)));
        takePlaceOf(*made, n);
        double const by = (a ? a->by : 0) + (b ? b->by : 0);
        return replace(n, *made, a ? *a->sum : *b->sum, number(by, y->rank(), n.name + ".number"));
    }

    // What sums with numbers may be joined behind: integers and sums of them.
    bool isOfSums(ir::Value const* v) const
    {
        return isOfIntegers(v) || (is(v->producer, Operation::kSum) &&
                                   (isOfIntegers(v->producer->inputs[0]) || isOfIntegers(v->producer->inputs[1])));
    }

    // A constant that the engine is built for.
    void fix(ir::Value const& constant) const
    {
        if (ctx_.recipes)
            ctx_.recipes->fix(*constant.constant->data);
    }

    // c times the sums of w over the dimensions in `axes`.
    Result<ir::Value*> sumsOf(Dequantized const& w, int64_t axes, bool keepDims, double c)
    {
        recipe::Computation computation(ctx_.recipes);
        TW_ASSIGN(ir::Value * v, computation.add(*w.node->op, *w.node->attrs,
                                                 {computation.take(*w.integers), computation.take(*w.scale)}));
        ops::reduce::Attrs a;
        a.kind = ops::reduce::Kind::kSum;
        a.axes = axes;
        a.keepDims = keepDims;
        TW_SET(v, computation.add(ops::reduce::def(), a, {v}));
        TW_SET(v, computation.add(ops::elementwise::def(), ops::elementwise::Attrs(Operation::kProd),
                                  {v, computation.literal(DataType::kFloat, Extents::ones(v->rank()), c)}));
        Extents const dims = ir::extentsOf(v->shape);
        auto sums = std::make_shared<ir::Constant>();
        TW_SET(sums->data, computation.finish(v));
        return g_.addConstant(w.integers->name + ".sums", DataType::kFloat, dims, std::move(sums));
    }

    std::optional<Dequantized> weightsOf(ir::Node const& n) const
    {
        auto const w = dequantizedOf(n.inputs[1]);
        bool const isKnown =
            w && w->integers->isConstant() && w->scale->isConstant() && isFullFloat(w->node->outputs[0]->type);
        return isKnown ? w : std::nullopt;
    }

    Result<bool> behindConvolution(ir::Node& n)
    {
        auto const r = raisedOf(n.inputs[0]);
        auto const w = r ? weightsOf(n) : std::nullopt;
        ir::Value* const bias = n.inputs.size() > 2 ? n.inputs[2] : nullptr;
        if (!w || (bias && !bias->isConstant()) || !isFullFloat(n.outputs[0]->type))
            return false;
        auto attrs = std::make_unique<ops::convolution::Attrs>(n.attrsAs<ops::convolution::Attrs>());
        ir::Value* x = r->x;
        std::vector<ir::Node*> made;
        TW_ASSIGN(bool const fits, padded(n, *r, *attrs, x, made));
        if (!fits)
            return false;
        int const rank = w->integers->rank();
        TW_ASSIGN(ir::Value * sums, sumsOf(*w, (int64_t(1) << rank) - 2, false, r->by));
        if (bias) {
            recipe::Computation computation(ctx_.recipes);
            TW_ASSIGN(ir::Value * both,
                      computation.add(ops::elementwise::def(), ops::elementwise::Attrs(Operation::kSum),
                                      {computation.take(*sums), computation.take(*bias)}));
            TW_ASSIGN(BlobPtr data, computation.finish(both));
            sums = constantWith(g_, *bias, DataType::kFloat, ir::extentsOf(bias->shape), std::move(data));
        }
        TW_ASSIGN(ir::Node * conv,
                  g_.addNode(*n.op, std::move(attrs), {x, n.inputs[1], sums}, n.name, {}, g_.positionOf(&n)));
        takePlaceOf(*conv, n);
        made.insert(made.begin(), conv);
        return put(n, conv->outputs[0], made);
    }

    // Where n pads, x becomes integers that are padded with what stands for 0, and n's attributes lose their padding. False: n
    // stays as it is.
    Result<bool> padded(ir::Node const& n, Raised const& r, ops::convolution::Attrs& a, ir::Value*& x,
                        std::vector<ir::Node*>& made)
    {
        if (a.paddingMode != ops::PaddingMode::kExplicitRoundDown)
            return false;
        auto const isNone = [](int64_t v) { return v == 0; };
        if (std::ranges::all_of(a.prePadding, isNone) && std::ranges::all_of(a.postPadding, isNone))
            return true;
        auto const d = dequantizedOf(x);
        auto const scale = d ? numberOf(d->scale, ctx_.recipes) : std::nullopt;
        double const zero = scale ? -r.by / *scale : 1e9;
        if (!ir::isStatic(x->shape) || std::abs(zero - std::round(zero)) > kRounding * kSteps || zero < -128.5 ||
            zero > 127.5)
            return false;
        fix(*d->scale);
        ops::slice::Attrs pads;
        Extents const dims = ir::extentsOf(x->shape);
        for (int i = 0; i < dims.rank; ++i) {
            int const at = i - (dims.rank - int(a.prePadding.size()));
            pads.start.push_back(at < 0 ? 0 : -a.prePadding[size_t(at)]);
            pads.size.push_back(dims[i] + (at < 0 ? 0 : a.prePadding[size_t(at)] + a.postPadding[size_t(at)]));
            pads.stride.push_back(1);
        }
        pads.mode = ops::slice::Mode::kFill;
        int8_t const fill = int8_t(std::lround(zero));
        ir::Value* const value = g_.addConstant(n.name + ".zero", DataType::kInt8, Extents{}, &fill);
        TW_ASSIGN(ir::Node * slice,
                  g_.addNode(ops::slice::def(), pads.clone(), {d->integers, nullptr, nullptr, nullptr, value},
                             n.name + ".padding", {}, g_.positionOf(&n)));
        takePlaceOf(*slice, n);
        TW_ASSIGN(ir::Node * numbers, g_.addNode(*d->node->op, d->node->attrs->clone(), {slice->outputs[0], d->scale},
                                                 d->node->name, {}, g_.positionOf(&n)));
        takePlaceOf(*numbers, *d->node);
        made = {numbers, slice};
        a.prePadding.assign(a.prePadding.size(), 0);
        a.postPadding.assign(a.postPadding.size(), 0);
        x = numbers->outputs[0];
        return true;
    }

    Result<bool> behindProduct(ir::Node& n)
    {
        auto const r = raisedOf(n.inputs[0]);
        auto const w = r ? weightsOf(n) : std::nullopt;
        auto const& a = n.attrsAs<ops::matrix_multiply::Attrs>();
        if (!w || a.connected || a.a == MatrixOperation::kVector || a.b == MatrixOperation::kVector ||
            n.inputs[1]->rank() < 2 || !isFullFloat(n.outputs[0]->type))
            return false;
        int const rank = n.inputs[1]->rank();
        bool const isTurned = a.b == MatrixOperation::kTranspose;
        TW_ASSIGN(ir::Value * sums, sumsOf(*w, int64_t(1) << (rank - (isTurned ? 1 : 2)), true, r->by));
        if (isTurned) { // [.., n, 1] has the elements of [.., 1, n]
            Extents dims = ir::extentsOf(sums->shape);
            std::swap(dims[rank - 1], dims[rank - 2]);
            sums = g_.addConstant(sums->name, DataType::kFloat, dims, sums->constant);
        }
        TW_ASSIGN(ir::Node * product,
                  g_.addNode(*n.op, n.attrs->clone(), {r->x, n.inputs[1]}, n.name, {}, g_.positionOf(&n)));
        takePlaceOf(*product, n);
        return replace(n, *product, *r->sum, sums);
    }

    // quantize(relu(x) + c, s) with c = -128 s.
    Result<bool> withoutClamp(ir::Node& q)
    {
        auto const r = sumOf(q.inputs[0]);
        ir::Node* const f = r ? onlyProducer(g_, r->x) : nullptr;
        auto const scale = isPerTensor(q) ? numberOf(q.inputs[1], ctx_.recipes) : std::nullopt;
        if (!f || !scale || f->op != &ops::activation::def() || f->body || hasWish(*f) ||
            std::abs(r->by / *scale + 128) > kRounding * kSteps)
            return false;
        auto const& a = f->attrsAs<ops::activation::Attrs>();
        bool const isRelu = a.kind == ops::activation::Kind::kRelu;
        bool const isClip =
            a.kind == ops::activation::Kind::kClip && a.alpha == 0 && a.beta >= (kSteps - 0.49) * *scale;
        if (!isRelu && !isClip)
            return false;
        ir::Value* const zero = r->sum->inputs[r->sum->inputs[0] == r->x ? 1 : 0];
        TW_ASSIGN(ir::Node * sum, g_.addNode(*r->sum->op, r->sum->attrs->clone(), {f->inputs[0], zero}, r->sum->name,
                                             {}, g_.positionOf(&q)));
        joinOrigins(*sum, *f, *r->sum);
        fix(*q.inputs[1]);
        fix(*zero);
        q.inputs[0] = sum->outputs[0];
        if (g_.useCount(r->sum->outputs[0]) == 0) {
            ir::Value* const x = r->x;
            g_.eraseNode(r->sum);
            if (g_.useCount(x) == 0)
                g_.eraseNode(x->producer);
        }
        return true;
    }

    ir::Graph& g_;
    PassContext const& ctx_;
};

} // namespace

Result<bool> moveZeroPoints(ir::Graph& g, PassContext const& ctx)
{
    return ZeroPoints(g, ctx).run();
}

} // namespace tw::passes
