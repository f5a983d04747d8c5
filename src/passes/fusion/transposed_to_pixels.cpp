// SPDX-License-Identifier: Apache-2.0
// Makes a convolution and a shuffle of pixels of a transposed convolution with few channels of results:
//   transposed(x [N, C, h, w], weights [C, K, r, s], stride (S, T))
//     ->  conv(x, weights as [K S T, C, ceil(r / S), ceil(s / T)])  ->  shuffles  ->  [N, K, h' S, w' T], of which a part is y
// An output at u = q S + f (before y is trimmed) sums over the inputs q - t by the elements f + t S of the filter: all S phases f read
// the same inputs, as channels of one convolution. Kernels of convolutions compute channels by vectors, of which one or three channels
// (what makes an image larger ends in them, and decoders of sound) fill a small part, and each phase would do so anew.
// For CPU builds. Expects Form::kCanonical. Stands before activation_before_movement and fuse_activation, which put what follows into
// the convolution. Leaves alone: weights that are computed or integers, groups, dilations, and where vectors are not filled better.
#include <algorithm>

#include "base/round.h"
#include "ops/convolution/op.h"
#include "ops/elementwise/op.h"
#include "ops/shuffle/op.h"
#include "ops/slice/op.h"
#include "passes/list.h"
#include "passes/node_kinds.h"
#include "passes/rewrite.h"
#include "recipe/recipes.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

// Along one axis: outputs u = q stride + phase, q in [first, first + count), of which y begins at `trim`.
struct PhaseAxis
{
    int64_t stride = 1, window = 1, taps = 1;
    int64_t first = 0, count = 0, trim = 0, out = 0;
    int64_t before = 0, after = 0; // padding of the convolution

    bool isWhole() const { return trim == 0 && out == count * stride; }
};

struct PhasePlan
{
    int64_t c = 0, k = 0;
    PhaseAxis axes[2];

    int64_t channels() const { return k * axes[0].stride * axes[1].stride; }
};

std::optional<PhasePlan> phasePlanOf(ir::Node const& conv)
{
    auto const& a = conv.attrsAs<ops::convolution::Attrs>();
    if (!ops::convolution::isBare(conv) || !a.transposed || a.groups != 1 ||
        a.paddingMode != ops::PaddingMode::kExplicitRoundDown)
        return std::nullopt;
    ir::Value const &x = *conv.inputs[0], &w = *conv.inputs[1], &y = *conv.outputs[0];
    if (x.rank() != 4 || w.rank() != 4 || !w.isConstant() || !isFullFloat(x.type) || !isFullFloat(w.type) ||
        (hasInput(conv, 2) && !conv.inputs[2]->isConstant()))
        return std::nullopt;
    PhasePlan p{w.shape[0].value(), w.shape[1].value(), {}};
    for (size_t i = 0; i < 2; ++i) {
        PhaseAxis& t = p.axes[i];
        ir::Dim const &in = x.shape[2 + i], &out = y.shape[2 + i];
        if (!in.isConst() || !out.isConst() || a.dilations[i] != 1 || in.value() == 0 || out.value() == 0)
            return std::nullopt;
        int64_t const padding = a.prePadding[i];
        t.stride = a.strides[i];
        t.window = w.shape[2 + i].value();
        t.taps = divideUp(t.window, t.stride);
        t.first = padding / t.stride;
        t.trim = padding % t.stride;
        t.out = out.value();
        t.count = divideUp(t.trim + t.out, t.stride);
        t.before = t.taps - 1 - t.first;
        t.after = t.first + t.count - in.value();
        if (padding < 0 || t.before < 0 || t.after < 0)
            return std::nullopt;
    }
    return p;
}

// Whether vectors of eight are filled better, by a quarter at least.
bool isCheaperByPhases(PhasePlan const& p)
{
    auto const& [h, w] = p.axes;
    int64_t const now = h.window * w.window * roundUp(p.k, 8);
    int64_t const then = h.taps * w.taps * roundUp(p.channels(), 8);
    return h.stride * w.stride > 1 && p.k > 0 && 5 * then <= 4 * now;
}

// [C, K, r, s] -> [K S T, C, taps, taps].
Result<BlobPtr> phaseKernel(PhasePlan const& p, ir::Value const& w, recipe::Recipes* recipes)
{
    auto const& [h, v] = p.axes;
    recipe::Computation c(recipes);
    ops::slice::Attrs whole; // zeros behind the last elements
    whole.start = {0, 0, 0, 0};
    whole.size = {p.c, p.k, h.taps * h.stride, v.taps * v.stride};
    whole.stride = {1, 1, 1, 1};
    whole.mode = ops::slice::Mode::kFill;
    TW_ASSIGN(ir::Value * y, c.add(ops::slice::def(), whole, {c.take(w)}));
    ops::shuffle::Attrs apart;
    apart.hasReshape = true;
    apart.reshape = {p.c, p.k, h.taps, h.stride, v.taps, v.stride};
    apart.secondTranspose = {1, 3, 5, 0, 2, 4};
    TW_SET(y, c.add(ops::shuffle::def(), apart, {y}));
    ops::slice::Attrs turned;
    turned.start = {0, 0, 0, 0, h.taps - 1, v.taps - 1};
    turned.size = {p.k, h.stride, v.stride, p.c, h.taps, v.taps};
    turned.stride = {1, 1, 1, 1, -1, -1};
    TW_SET(y, c.add(ops::slice::def(), turned, {y}));
    return c.finish(y);
}

// [K] -> [K S T].
Result<BlobPtr> phaseBias(PhasePlan const& p, ir::Value const& b, recipe::Recipes* recipes)
{
    recipe::Computation c(recipes);
    ir::Value* const zeros = c.literal(b.type, {1, p.axes[0].stride * p.axes[1].stride}, 0);
    ops::elementwise::Attrs const sum(ops::elementwise::Operation::kSum);
    TW_ASSIGN(ir::Value * y, c.add(ops::elementwise::def(), sum, {c.take(b, {p.k, 1}), zeros}));
    return c.finish(y);
}

Result<bool> toPixels(ir::Graph& g, ir::Node& conv, PassContext const& ctx)
{
    auto const p = phasePlanOf(conv);
    if (!p || !isCheaperByPhases(*p))
        return false;
    auto const& [h, v] = p->axes;
    ir::Value const& w = *conv.inputs[1];
    TW_ASSIGN(BlobPtr kernel, phaseKernel(*p, w, ctx.recipes));
    Extents const dims{p->channels(), p->c, h.taps, v.taps};
    std::vector<ir::Value*> in{conv.inputs[0], constantWith(g, w, w.type, dims, std::move(kernel))};
    if (hasInput(conv, 2)) {
        ir::Value const& b = *conv.inputs[2];
        TW_ASSIGN(BlobPtr bias, phaseBias(*p, b, ctx.recipes));
        in.push_back(constantWith(g, b, b.type, {p->channels()}, std::move(bias)));
    }
    ops::convolution::Attrs a = ops::convolution::Attrs::plain(2);
    for (size_t i = 0; i < 2; ++i) {
        a.prePadding[i] = p->axes[i].before;
        a.postPadding[i] = p->axes[i].after;
    }
    ops::shuffle::Attrs apart, joined;
    apart.hasReshape = joined.hasReshape = true;
    apart.reshape = {0, p->k, h.stride, v.stride, h.count, v.count};
    apart.secondTranspose = {0, 1, 4, 2, 5, 3};
    joined.reshape = {0, p->k, h.count * h.stride, v.count * v.stride};

    int position = g.positionOf(&conv);
    ir::Value* last = nullptr;
    auto add = [&](ir::OpDef const& op, ir::AttrsBase const& attrs, std::vector<ir::Value*> inputs,
                   std::string const& name) -> Result<void> {
        TW_ASSIGN(ir::Node * n, g.addNode(op, attrs.clone(), std::move(inputs), conv.name + name, {}, position++));
        takePlaceOf(*n, conv);
        last = n->outputs[0];
        last->name = conv.outputs[0]->name + (name.empty() ? ".phases" : name);
        return {};
    };
    TW_TRY(add(ops::convolution::def(), a, std::move(in), ""));
    TW_TRY(add(ops::shuffle::def(), apart, {last}, ".pixels"));
    TW_TRY(add(ops::shuffle::def(), joined, {last}, ".image"));
    if (!h.isWhole() || !v.isWhole()) {
        ops::slice::Attrs part = ops::slice::partOf(last->shape, 2, h.trim, h.out);
        part.start[3] = v.trim;
        part.size[3] = v.out;
        TW_TRY(add(ops::slice::def(), part, {last}, ".part"));
    }
    ir::Value* const y = conv.outputs[0];
    last->name = y->name;
    g.replaceAllUses(y, last);
    ctx.log.info("transposed convolution {} is one of {} channels, whose pixels are shuffled", conv.name,
                 p->channels());
    g.eraseNode(&conv);
    return true;
}

} // namespace

Result<bool> transposedToPixels(ir::Graph& g, PassContext const& ctx)
{
    if (ctx.target.gpu())
        return false;
    return rewriteEach(
        g, [](ir::Node const& n) { return n.op == &ops::convolution::def(); },
        [&](ir::Node& n) { return toPixels(g, n, ctx); });
}

} // namespace tw::passes
