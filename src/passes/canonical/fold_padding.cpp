// SPDX-License-Identifier: Apache-2.0
// Folds zero padding before a convolution or an average pooling into its own padding.
//   pad(x) -> conv                          ->  conv with the padding added
//   pad(x) -> average pooling, unpadded     ->  average pooling, padded, whose count includes the padding
// A padding is a padding node or a slice in fill mode that begins before x and steps by one; none of its sides crops.
// Where the batch is dynamic the slice's sizes are computed; what computed them goes.
// Expects Form::kCanonical. Stands before the fusions. Leaves alone: padding that others read too or that is not zero,
// windows with padding modes that compute their own, maxima (zero is no neutral element).
#include <algorithm>

#include "ops/convolution/op.h"
#include "ops/padding/op.h"
#include "ops/pooling/op.h"
#include "ops/slice/op.h"
#include "passes/list.h"
#include "passes/rewrite.h"
#include "recipe/recipes.h"
#include "tactic/registry.h"

namespace tw::passes {

namespace {

// Elements before and after each dimension.
struct Pads
{
    std::vector<int64_t> before, after;
};

std::optional<Pads> padsOf(ir::Node const& n, recipe::Recipes const* refit)
{
    if (n.op != &ops::padding::def() && n.op != &ops::slice::def())
        return std::nullopt;
    ir::Shape const& x = n.inputs[0]->shape;
    Pads pads{std::vector<int64_t>(x.size(), 0), std::vector<int64_t>(x.size(), 0)};
    if (n.op == &ops::padding::def()) {
        auto const& a = n.attrsAs<ops::padding::Attrs>();
        for (size_t i = 0; i < 2; ++i) {
            pads.before[x.size() - 2 + i] = a.pre[i];
            pads.after[x.size() - 2 + i] = a.post[i];
        }
    } else {
        auto const& a = n.attrsAs<ops::slice::Attrs>();
        for (size_t i : {1, 3}) // start and stride; sizes that come with a dynamic batch are in the shape
            if (i < n.inputs.size() && n.inputs[i])
                return std::nullopt;
        bool const zero = n.inputs.size() < 5 ||
                          (allEqual(n.inputs[4], 0) && !(n.inputs[4] && refit && refit->reaches(*n.inputs[4])));
        if (a.mode != ops::slice::Mode::kFill || !zero)
            return std::nullopt;
        for (size_t i = 0; i < x.size(); ++i) {
            pads.before[i] = -a.start[i];
            ir::Dim const& y = n.outputs[0]->shape[i];
            bool const same = a.start[i] == 0 && y == x[i];
            if (a.stride[i] != 1 || (!same && !(x[i].isConst() && y.isConst())))
                return std::nullopt;
            pads.after[i] = same ? 0 : a.start[i] + y.value() - x[i].value();
        }
    }
    for (size_t i = 0; i < x.size(); ++i)
        if (pads.before[i] < 0 || pads.after[i] < 0)
            return std::nullopt;
    return pads;
}

// Adds the padding to that of a window over the last axes; false, and nothing changed, when it reaches others.
bool addTo(Pads const& pads, std::vector<int64_t>& pre, std::vector<int64_t>& post)
{
    size_t const first = pads.before.size() - pre.size();
    for (size_t i = 0; i < first; ++i)
        if (pads.before[i] != 0 || pads.after[i] != 0)
            return false;
    for (size_t i = 0; i < pre.size(); ++i) {
        pre[i] += pads.before[first + i];
        post[i] += pads.after[first + i];
    }
    return true;
}

bool isZero(std::vector<int64_t> const& list)
{
    return std::ranges::all_of(list, [](int64_t v) { return v == 0; });
}

// The window's attributes with the padding; null when it cannot take it.
std::unique_ptr<ir::AttrsBase> padded(ir::Node const& window, Pads const& pads)
{
    if (ops::convolution::isBareForward(window)) {
        auto a = std::make_unique<ops::convolution::Attrs>(window.attrsAs<ops::convolution::Attrs>());
        if (a->paddingMode != ops::PaddingMode::kExplicitRoundDown || !addTo(pads, a->prePadding, a->postPadding))
            return nullptr;
        return a;
    }
    if (window.op == &ops::pooling::def()) {
        auto a = std::make_unique<ops::pooling::Attrs>(window.attrsAs<ops::pooling::Attrs>());
        bool const counts = !a->excludePadding || (isZero(a->prePadding) && isZero(a->postPadding));
        if (a->kind != ops::pooling::Kind::kAverage || !counts ||
            a->paddingMode != ops::PaddingMode::kExplicitRoundDown || !addTo(pads, a->prePadding, a->postPadding))
            return nullptr;
        a->excludePadding = false;
        return a;
    }
    return nullptr;
}

} // namespace

Result<bool> foldPadding(ir::Graph& g, PassContext const& ctx)
{
    bool changed = false, isUntidy = false;
    for (size_t i = 0; i < g.nodes.size(); ++i) {
        ir::Node& window = *g.nodes[i];
        ir::Node* pad = window.inputs.empty() ? nullptr : onlyProducer(g, window.inputs[0]);
        if (!pad || !canJoin(*pad, window))
            continue;
        auto const pads = padsOf(*pad, ctx.recipes);
        auto attrs = pads ? padded(window, *pads) : nullptr;
        if (!attrs)
            continue;
        std::unique_ptr<ir::AttrsBase> before = window.attrs->clone();
        ir::Value* const between = window.inputs[0];
        ir::Shape const shape = window.outputs[0]->shape;
        window.attrs = std::move(attrs);
        window.inputs[0] = pad->inputs[0];
        auto inferred = g.inferNode(window);
        if (!inferred.ok() || !(window.outputs[0]->shape == shape)) { // a limit of the window, say
            window.attrs = std::move(before);
            window.inputs[0] = between;
            TW_TRY(g.inferNode(window));
            continue;
        }
        ctx.log.info("folded {} into {}", pad->name, window.name);
        joinOrigins(window, *pad, window);
        isUntidy = isUntidy || pad->inputs.size() > 1;
        g.eraseNode(pad);
        --i; // the padding stood before
        changed = true;
    }
    if (isUntidy) // what computed sizes
        TW_TRY(removeDead(g, ctx));
    if (changed)
        g.eraseUnusedValues();
    return changed;
}

} // namespace tw::passes
