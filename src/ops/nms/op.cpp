// SPDX-License-Identifier: Apache-2.0
#include "ops/nms/op.h"

#include <algorithm>

#include "tactic/domain.h"
#include "tactic/registry.h"

namespace tw::ops::nms {

namespace {

using ir::Dim;
using ir::Shape;

bool differ(Dim const& a, Dim const& b)
{
    return a.isConst() && b.isConst() && a.value() != b.value();
}

Result<void> checkTypes(ir::InferContext& ctx)
{
    for (int i : {kBoxes, kScores, kOverlap, kLeast})
        if (ctx.has(i) && !isFloating(ctx.type(i)))
            return ctx.error(ctx.describe(i) + " must be f32 or f16");
    if (ctx.type(kMost) != DataType::kInt32)
        return ctx.error("the most boxes of a class, " + ctx.describe(kMost) + ", must be i32");
    return {};
}

Result<void> checkShapes(ir::InferContext& ctx)
{
    Shape const &boxes = ctx.shape(kBoxes), &scores = ctx.shape(kScores);
    if ((boxes.size() != 3 && boxes.size() != 4) || (boxes.back().isConst() && !boxes.back().is(4)))
        return ctx.error("boxes " + ctx.describe(kBoxes) + " must have shape [n, boxes, 4] or [n, boxes, classes, 4]");
    if (scores.size() != 3)
        return ctx.error("scores " + ctx.describe(kScores) + " must have shape [n, boxes, classes]");
    bool const own = boxes.size() == 4 && !boxes[2].is(1);
    if (differ(boxes[0], scores[0]) || differ(boxes[1], scores[1]) || (own && differ(boxes[2], scores[2])))
        return ctx.error("boxes " + ctx.describe(kBoxes) + " and scores " + ctx.describe(kScores) +
                         " must agree in batch, boxes and classes");
    for (int i : {kMost, kOverlap, kLeast})
        if (ctx.has(i) && ctx.rank(i) != 0)
            return ctx.error(ctx.describe(i) + " must be a scalar");
    return {};
}

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    if (a.format < BoxFormat::kCornerPairs || a.format > BoxFormat::kCenterSizes)
        return ctx.error("box format {} is unknown (allowed: 0 and 1)", int(a.format));
    if (a.limit < 1)
        return ctx.error("the limit of candidates is {}, it must be positive", a.limit);
    TW_TRY(checkTypes(ctx));
    TW_TRY(checkShapes(ctx));
    Shape const& scores = ctx.shape(kScores);
    int64_t ofClass = std::min(ctx.range(scores[1]).hi, a.limit);
    if (auto const* most = ctx.content(kMost); most && (*most)[0].isConst())
        ofClass = std::clamp<int64_t>((*most)[0].value(), 0, ofClass);
    int64_t const all = ir::mulSat(ctx.range(scores[0] * scores[2]).hi, ofClass);
    ctx.output(0, DataType::kInt32, {ctx.freshSymbol({0, std::clamp<int64_t>(all, 0, INT32_MAX)}), 3});
    ctx.output(1, DataType::kInt32, {});
    return {};
}

// Boxes of which many overlap; some scores are equal.
void domain(ir::Node const& node, int input, Domain& d)
{
    if (input == kBoxes)
        d = node.attrsAs<Attrs>().format == BoxFormat::kCenterSizes ? Domain{0.1, 1} : Domain{0, 1};
    else
        d = input == kScores ? Domain{-3, 12, true, false}
            : input == kMost ? Domain{0, 6, true, false}
                             : Domain{0, 0.6};
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "nms",
    TW_OP_PARTS(Attrs),
    .inputs = {3, 5},
    .domain = domain,
    .mixesFloats = true,
};

} // namespace tw::ops::nms
