// SPDX-License-Identifier: Apache-2.0
#include "ops/proposals/op.h"

#include "tactic/domain.h"
#include "tactic/registry.h"

namespace tw::ops::proposals {

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
    for (int64_t count : {a.limit, a.keep})
        if (count < 1 || count > kMostBoxes)
            return ctx.error("of the {} best boxes {} are to stay (allowed: 1 to {})", a.limit, a.keep, kMostBoxes);
    if (a.weights.size() != 4 || (!a.limits.empty() && a.limits.size() != 2))
        return ctx.error("there must be four weights, and two limits or none");
    return {};
}

Result<void> checkInput(ir::InferContext& ctx, int i, size_t rank, int64_t last, char const* what)
{
    if (!ctx.has(i))
        return {};
    bool const isType = i == kClasses ? ctx.type(i) == DataType::kInt32 : isFloating(ctx.type(i));
    Shape const &s = ctx.shape(i), &scores = ctx.shape(kScores);
    bool const isRank = s.size() == rank && (last == 0 || !s.back().isConst() || s.back().is(last));
    bool const isShared = i == kBoxes && isRank && s[0].is(1);
    if (!isType || !isRank || (!isShared && differ(s[0], scores[0])) || (i != kImages && differ(s[1], scores[1])))
        return ctx.error(ctx.describe(i) + " must be " + what + ", for scores " + ctx.describe(kScores));
    return {};
}

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TW_TRY(checkAttrs(ctx));
    if (!isFloating(ctx.type(kScores)) || ctx.rank(kScores) != 2)
        return ctx.error("scores " + ctx.describe(kScores) + " must be f32 or f16 of shape [n, boxes]");
    TW_TRY(checkInput(ctx, kBoxes, 3, 4, "boxes, f32 or f16 of shape [n, boxes, 4] or [1, boxes, 4]"));
    TW_TRY(checkInput(ctx, kDeltas, 3, 4, "deltas, f32 or f16 of shape [n, boxes, 4]"));
    TW_TRY(checkInput(ctx, kClasses, 2, 0, "classes, i32 of shape [n, boxes]"));
    TW_TRY(checkInput(ctx, kImages, 2, 3, "images, f32 or f16 of shape [n, 3]"));
    Dim const n = ctx.shape(kScores)[0];
    ctx.output(0, DataType::kFloat, {n, a.keep, ctx.has(kClasses) ? 6 : 4});
    ctx.output(1, DataType::kFloat, {n, a.keep});
    return {};
}

// Boxes of which many overlap; some scores are equal.
void domain(ir::Node const&, int input, Domain& d)
{
    switch (input) {
    case kBoxes:
        d = Domain{0, 12, true, false};
        break;
    case kScores:
        d = Domain{-20, 40, true, false};
        break;
    case kClasses:
        d = Domain{0, 3, true, false};
        break;
    case kImages:
        d = Domain{8, 12, true, false};
        break;
    default:
        d = Domain{-1, 1};
        break;
    }
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "proposals",
    TW_OP_PARTS(Attrs),
    .inputs = {2, 5},
    .domain = domain,
    .mixesFloats = true,
};

} // namespace tw::ops::proposals
