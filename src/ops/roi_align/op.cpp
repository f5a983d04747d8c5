// SPDX-License-Identifier: Apache-2.0
#include "ops/roi_align/op.h"

#include <algorithm>

#include "tactic/domain.h"
#include "tactic/registry.h"

namespace tw::ops::roi_align {

namespace {

using ir::Dim;
using ir::Shape;

template <class E>
bool isOf(E value, E last)
{
    return int(value) >= 0 && value <= last;
}

Result<void> checkAttrs(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    if (!isOf(a.mode, Mode::kMax) || !isOf(a.boxes, Boxes::kTidied) || !isOf(a.grid, Grid::kPooled) ||
        !isOf(a.outside, Outside::kClamp))
        return ctx.error("mode, boxes, grid or outside is unknown");
    for (int64_t bins : {a.height, a.width})
        if (bins < 1 || bins > kMostBins)
            return ctx.error("a region becomes {} x {} (allowed: 1 to {})", a.height, a.width, kMostBins);
    if (a.samples < 0 || a.samples > kMostSamples)
        return ctx.error("the number of samples is {} (allowed: 0 to {})", a.samples, kMostSamples);
    if (a.grid == Grid::kPooled && (a.mode != Mode::kMax || a.boxes != Boxes::kScaled))
        return ctx.error("whole pixels are pooled with mode max and scaled boxes alone");
    if (!(a.imageHeight > 0 && a.imageWidth > 0))
        return ctx.error("the sides of images must be above 0");
    if (!std::is_sorted(a.areas.begin(), a.areas.end()))
        return ctx.error("the areas of levels must not fall");
    return {};
}

bool differ(Dim const& a, Dim const& b)
{
    return a.isConst() && b.isConst() && a.value() != b.value();
}

Result<void> checkInputs(ir::InferContext& ctx)
{
    if (ctx.inputCount() <= kMaps)
        return ctx.error("there is no map");
    Shape const& rois = ctx.shape(kRois);
    size_t const rank = ctx.has(kImages) ? 2 : 3;
    if (!isFloating(ctx.type(kRois)) || rois.size() != rank || (rois.back().isConst() && !rois.back().is(4)))
        return ctx.error("rois " + ctx.describe(kRois) + " must be f32 or f16 of shape " +
                         (rank == 2 ? "[rois, 4]" : "[n, rois, 4]"));
    if (ctx.has(kImages) &&
        (ctx.type(kImages) != DataType::kInt32 || ctx.rank(kImages) != 1 || differ(ctx.shape(kImages)[0], rois[0])))
        return ctx.error("the images of rois, " + ctx.describe(kImages) + ", must be i32, one for each of " +
                         ctx.describe(kRois));
    for (int i = kMaps; i < ctx.inputCount(); ++i) {
        if (!ctx.has(i) || !isFloating(ctx.type(i)) || ctx.type(i) != ctx.type(kMaps) || ctx.rank(i) != 4)
            return ctx.error("map " + ctx.describe(i) + " must be f32 or f16, as all maps are, of shape [n, c, h, w]");
        for (size_t d = 0; d < 2; ++d)
            if (differ(ctx.shape(i)[d], ctx.shape(kMaps)[d]))
                return ctx.error("maps " + ctx.describe(kMaps) + " and " + ctx.describe(i) +
                                 " must agree in batch and channels");
    }
    if (!ctx.has(kImages) && differ(rois[0], ctx.shape(kMaps)[0]))
        return ctx.error("rois " + ctx.describe(kRois) + " and map " + ctx.describe(kMaps) +
                         " must have the same batch");
    return {};
}

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TW_TRY(checkAttrs(ctx));
    TW_TRY(checkInputs(ctx));
    Shape y = ctx.shape(kRois);
    y.back() = ctx.shape(kMaps)[1];
    y.push_back(a.height);
    y.push_back(a.width);
    ctx.output(0, ctx.type(kMaps), std::move(y));
    return {};
}

// Corners within a small map and around it; a few of them are the wrong way round.
void domain(ir::Node const& node, int input, Domain& d)
{
    auto const& a = node.attrsAs<Attrs>();
    if (input == kImages)
        d = Domain{-1, 2, true, false};
    if (input == kRois)
        d = a.boxes == Boxes::kScaled ? Domain{-3 / a.scale, 14 / a.scale}
            : a.isAbsolute            ? Domain{-9, a.imageWidth + 9}
                                      : Domain{-0.2, 1.2};
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "roi_align",
    TW_OP_PARTS(Attrs),
    .inputs = {1, kMaps + int(kMostMaps)},
    .domain = domain,
};

} // namespace tw::ops::roi_align
