// SPDX-License-Identifier: Apache-2.0
#include "ops/detection/op.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tactic/domain.h"
#include "tactic/registry.h"

namespace tw::ops::detection {

float leastElement(Attrs const& a)
{
    if (!a.sigmoid)
        return float(a.least);
    return a.least <= 0 ? -std::numeric_limits<float>::infinity() : float(std::log(a.least / (1 - a.least)));
}

int64_t mostCandidates(Attrs const& a, int64_t elements)
{
    return a.limit > 0 ? std::min(a.limit, elements) : elements;
}

int64_t mostKept(Attrs const& a, int64_t elements)
{
    int64_t const candidates = mostCandidates(a, elements);
    return a.mostOfClass > 0 ? candidates : std::min(a.most, candidates);
}

namespace {

using ir::Dim;
using ir::Shape;

bool differ(Dim const& a, Dim const& b)
{
    return a.isConst() && b.isConst() && a.value() != b.value();
}

Result<void> checkAttrs(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    if (a.coding < Coding::kCorners || a.coding > Coding::kCenterSizes)
        return ctx.error("box coding {} is unknown (allowed: 0 and 1)", int(a.coding));
    if (a.pixels < Pixels::kNone || a.pixels > Pixels::kAll)
        return ctx.error("pixels {} are unknown (allowed: 0 to 2)", int(a.pixels));
    if (a.most < 1 || a.most > INT32_MAX)
        return ctx.error("the most boxes of an image are {}, it must be 1 to 2^31 - 1", a.most);
    for (int64_t n : {a.mostOfClass, a.limit, a.limitOfClass})
        if (n < 0)
            return ctx.error("a limit is {}, it must not be negative", n);
    if (std::isnan(a.least) || std::isnan(a.overlap))
        return ctx.error("a threshold is not a number");
    return {};
}

Result<void> checkShapes(ir::InferContext& ctx)
{
    for (int i : {kBoxes, kScores, kAnchors})
        if (ctx.has(i) && !isFloating(ctx.type(i)))
            return ctx.error(ctx.describe(i) + " must be f32 or f16");
    Shape const &boxes = ctx.shape(kBoxes), &scores = ctx.shape(kScores);
    auto const isFour = [](Dim const& d) { return !d.isConst() || d.is(4); };
    if ((boxes.size() != 3 && boxes.size() != 4) || !isFour(boxes.back()))
        return ctx.error("boxes " + ctx.describe(kBoxes) + " must have shape [n, boxes, 4] or [n, boxes, classes, 4]");
    if (scores.size() != 3)
        return ctx.error("scores " + ctx.describe(kScores) + " must have shape [n, boxes, classes]");
    bool const own = boxes.size() == 4 && !boxes[2].is(1);
    if (differ(boxes[0], scores[0]) || differ(boxes[1], scores[1]) || (own && differ(boxes[2], scores[2])))
        return ctx.error("boxes " + ctx.describe(kBoxes) + " and scores " + ctx.describe(kScores) +
                         " must agree in batch, boxes and classes");
    if (Dim const elements = scores[1] * scores[2]; elements.isConst() && elements.value() > INT32_MAX)
        return ctx.error("scores " + ctx.describe(kScores) + " have 2^31 elements of an image or more");
    if (ctx.has(kAnchors)) {
        Shape const& anchors = ctx.shape(kAnchors);
        if (anchors.size() != 3 || !isFour(anchors[2]) || differ(anchors[1], boxes[1]) ||
            (!anchors[0].is(1) && differ(anchors[0], boxes[0])))
            return ctx.error("anchors " + ctx.describe(kAnchors) + " must have shape [n or 1, boxes, 4] for boxes " +
                             ctx.describe(kBoxes));
    }
    return {};
}

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TW_TRY(checkAttrs(ctx));
    TW_TRY(checkShapes(ctx));
    Dim const n = ctx.shape(kScores)[0];
    if (a.rows) {
        ctx.output(0, DataType::kInt32, {n * Dim(a.most), 3});
        return {};
    }
    if (a.countBits)
        ctx.output(0, DataType::kFloat, {n, 1, 1, 1});
    else
        ctx.output(0, DataType::kInt32, {n, 1});
    ctx.output(1, ctx.type(kBoxes), {n, a.most, 4});
    ctx.output(2, ctx.type(kScores), {n, a.most});
    ctx.output(3, DataType::kInt32, {n, a.most});
    return {};
}

// Boxes of which many overlap; some scores are equal.
void domain(ir::Node const& node, int input, Domain& d)
{
    auto const& a = node.attrsAs<Attrs>();
    if (input == kScores)
        d = a.sigmoid ? Domain{-3, 3, true, false} : Domain{-1, 6, true, false};
    else
        d = a.coding == Coding::kCenterSizes ? Domain{0.1, 1} : Domain{0, 1};
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "detection",
    TW_OP_PARTS(Attrs),
    .inputs = {2, 3},
    .domain = domain,
};

} // namespace tw::ops::detection
