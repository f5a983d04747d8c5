// SPDX-License-Identifier: Apache-2.0
// NonMaxSuppression. Its rows are by batch, class and score, the layer's by batch and score: each class becomes a batch
// item of one class, and the numbers of both are taken apart again.
#include <limits>

#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using Op = nvinfer1::ElementWiseOperation;

constexpr int64_t kMostCandidates = 5000; // of INMSLayer

// Input i as a scalar of this type; `absent` where it is left out.
ITensor& scalarOf(ImportContext& ctx, int i, DataType type, double absent)
{
    if (!ctx.hasInput(i))
        return ctx.scalar(absent, type, 0);
    Value const v = ctx.input(i);
    if (volume(v.dims()) != 1)
        ctx.invalid(fmt::format("input {} has shape {}, it must be a scalar", i, describe(v.dims())));
    ITensor& t = ctx.cast(ctx.asTensor(v), type);
    return v.rank() == 0 ? t : ctx.reshape(t, Dims{0, {}});
}

// Boxes [n, b, 4] once for each class: [n * c, b, 4].
ITensor& forClasses(ImportContext& ctx, ITensor& boxes, Size const& classes)
{
    Sizes const s = ctx.sizesOf(boxes);
    ITensor& all = ctx.expand(ctx.unsqueeze(boxes, {1}), {s[0], classes, s[1], s[2]});
    return ctx.reshape(all, Sizes{ctx.mul(s[0], classes), s[1], s[2]});
}

// Rows (item, 0, box) with item = n * classes + c as (n, c, box).
ITensor& apart(ImportContext& ctx, ITensor& rows, Size const& classes)
{
    Size const count = ctx.sizesOf(rows)[0];
    auto column = [&](int64_t at) -> ITensor& {
        return ctx.slice(rows, {Size(0), Size(at)}, {count, Size(1)}, {Size(1), Size(1)});
    };
    ITensor& perBatch = ctx.unsqueeze(ctx.asTensor(classes), {0});
    ITensor& item = column(0);
    ITensor& batch = ctx.elementwise(item, perBatch, Op::kFLOOR_DIV);
    ITensor& kind = ctx.elementwise(item, ctx.elementwise(batch, perBatch, Op::kPROD), Op::kSUB);
    return ctx.concat({&batch, &kind, &column(2)}, 1);
}

void importNonMaxSuppression(ImportContext& ctx)
{
    ITensor *boxes = &ctx.tensor(0), *scores = &ctx.tensor(1);
    for (ITensor* t : {boxes, scores})
        if (t->getDimensions().nbDims != 3)
            ctx.invalid("boxes and scores must have rank 3, a shape is " + describe(t->getDimensions()));
    Sizes const s = ctx.sizesOf(*scores);
    bool const oneClass = s[1].known() && s[1].value == 1;
    if (!s[2].known() || s[2].value > kMostCandidates)
        ctx.warn(
            fmt::format("of each class the {} boxes with the highest scores are looked at; INMSLayer takes no more",
                        kMostCandidates));
    if (!oneClass)
        boxes = &forClasses(ctx, *boxes, s[1]);
    scores = &ctx.reshape(*scores, Sizes{ctx.mul(s[0], s[1]), s[2], Size(1)});
    ITensor& most = scalarOf(ctx, 2, DataType::kINT32, 0);
    auto& layer = ctx.added(ctx.network().addNMS(*boxes, *scores, most));
    layer.setInput(3, scalarOf(ctx, 3, DataType::kFLOAT, 0));
    layer.setInput(4, scalarOf(ctx, 4, DataType::kFLOAT, std::numeric_limits<float>::lowest()));
    int64_t const format = ctx.attrInt("center_point_box", 0);
    if (format != 0 && format != 1)
        ctx.invalid(fmt::format("center_point_box is {} (allowed: 0, 1)", format));
    layer.setBoundingBoxFormat(static_cast<nvinfer1::BoundingBoxFormat>(format));
    ITensor& rows = ctx.out(layer);
    ctx.setOutput(0, oneClass ? rows : apart(ctx, rows, s[1]));
}

} // namespace

void register_nms(ImporterMap& map)
{
    map.add("NonMaxSuppression", importNonMaxSuppression);
}

} // namespace tw::onnx
