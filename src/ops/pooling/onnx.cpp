// SPDX-License-Identifier: Apache-2.0
// MaxPool, AveragePool and their global forms. One spatial dimension runs as a 2-D window of height 1.
#include "onnx/importer.h"
#include "onnx/window.h"

namespace tw::onnx {

namespace {

using nvinfer1::PaddingMode;
using nvinfer1::PoolingType;

void importPool(ImportContext& ctx, PoolingType type)
{
    ITensor* x = &ctx.tensor(0);
    int const spatial = x->getDimensions().nbDims - 2;
    ctx.check(spatial >= 1 && spatial <= 3, "input of shape " + describe(x->getDimensions()) +
                                                " must have 1, 2 or 3 dimensions behind batch and channel");
    if (ctx.wantsOutput(1))
        ctx.fail("output 'Indices' has no counterpart: IPoolingLayer has one output");
    WindowAttrs window = readWindow(ctx, spatial, {});
    for (int64_t d : window.dilations)
        ctx.check(d == 1, "attribute 'dilations' must be 1: IPoolingLayer has no dilation");
    for (int i = 0; i < spatial; ++i)
        ctx.check(window.before[i] >= 0 && window.after[i] >= 0, "attribute 'pads' must not be negative");
    if (ctx.attrInt("ceil_mode", 0) != 0 && window.mode == PaddingMode::kEXPLICIT_ROUND_DOWN)
        window.mode = PaddingMode::kEXPLICIT_ROUND_UP;

    if (spatial == 1) {
        x = &ctx.unsqueeze(*x, {2});
        window.prependUnit();
    }
    auto& pool = ctx.added(ctx.network().addPoolingNd(*x, type, makeDims(window.kernel)));
    pool.setStrideNd(makeDims(window.strides));
    pool.setPaddingMode(window.mode);
    pool.setPrePadding(makeDims(window.before));
    pool.setPostPadding(makeDims(window.after));
    if (type == PoolingType::kAVERAGE)
        pool.setAverageCountExcludesPadding(ctx.attrInt("count_include_pad", 0) == 0);
    ITensor& y = ctx.out(pool);
    ctx.setOutput(0, spatial == 1 ? ctx.squeeze(y, {2}) : y);
}
void importMaxPool(ImportContext& ctx)
{
    importPool(ctx, PoolingType::kMAX);
}
void importAveragePool(ImportContext& ctx)
{
    importPool(ctx, PoolingType::kAVERAGE);
}

// A reduction: it needs no window, so that the spatial sizes may be unknown.
void importGlobal(ImportContext& ctx, nvinfer1::ReduceOperation op)
{
    ITensor& x = ctx.tensor(0);
    int const rank = x.getDimensions().nbDims;
    ctx.check(rank >= 3, "input of shape " + describe(x.getDimensions()) + " has no spatial dimension");
    std::vector<int> axes;
    for (int i = 2; i < rank; ++i)
        axes.push_back(i);
    ctx.setOutput(0, ctx.reduce(x, op, axes, true));
}
void importGlobalMaxPool(ImportContext& ctx)
{
    importGlobal(ctx, nvinfer1::ReduceOperation::kMAX);
}
void importGlobalAveragePool(ImportContext& ctx)
{
    importGlobal(ctx, nvinfer1::ReduceOperation::kAVG);
}

} // namespace

void register_pooling(ImporterMap& map)
{
    map.add("MaxPool", importMaxPool);
    map.add("AveragePool", importAveragePool);
    map.add("GlobalMaxPool", importGlobalMaxPool);
    map.add("GlobalAveragePool", importGlobalAveragePool);
}

} // namespace tw::onnx
