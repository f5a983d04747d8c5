// SPDX-License-Identifier: Apache-2.0
// LpPool and GlobalLpPool: (sum over the window of |x|^p)^(1/p) = (window size * average of |x|^p)^(1/p).
#include <algorithm>

#include "importers/common/window.h"
#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using Op = nvinfer1::ElementWiseOperation;
using nvinfer1::PaddingMode;
using nvinfer1::UnaryOperation;

ITensor& power(ImportContext& ctx, ITensor& x, double p)
{
    if (p == 1)
        return x;
    if (p == 2)
        return ctx.elementwise(x, x, Op::kPROD);
    if (p == 0.5)
        return ctx.unary(x, UnaryOperation::kSQRT);
    return ctx.elementwise(x, ctx.scalarLike(p, x), Op::kPOW);
}

void importLpPool(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    int const spatial = x.getDimensions().nbDims - 2;
    ctx.check(spatial >= 1 && spatial <= 3, "the input must have 1, 2 or 3 dimensions behind batch and channel");
    int64_t const p = ctx.attrInt("p", 2);
    if (p < 1)
        ctx.invalid(fmt::format("p is {}", p));
    ITensor* t = &power(ctx, ctx.unary(x, UnaryOperation::kABS), double(p));
    if (ctx.opType() == "GlobalLpPool") {
        std::vector<int> axes;
        for (int i = 2; i < spatial + 2; ++i)
            axes.push_back(i);
        ITensor& sum = ctx.reduce(*t, nvinfer1::ReduceOperation::kSUM, axes, true);
        return ctx.setOutput(0, power(ctx, sum, 1.0 / double(p)));
    }
    WindowAttrs w = readWindow(ctx, spatial, {});
    // The average counts every position of a window that lies inside of input and padding: rounding up by more padding
    // instead of by the mode leaves it at the window's size.
    Dims const d = x.getDimensions();
    bool const clip = roundUp(ctx, w, {d.d + 2, d.d + d.nbDims}) || w.mode == PaddingMode::kCAFFE_ROUND_UP;
    if (std::ranges::any_of(w.dilations, [](int64_t d) { return d > 1; })) { // of opset 18
        if (clip)
            w.mode = PaddingMode::kEXPLICIT_ROUND_UP;
        ITensor& sums = windowSums(ctx, *t, w);
        return ctx.setOutput(0, power(ctx, clip ? withoutEmptyWindows(ctx, sums, *t, w) : sums, 1.0 / double(p)));
    }
    if (w.mode == PaddingMode::kCAFFE_ROUND_UP || w.mode == PaddingMode::kEXPLICIT_ROUND_UP) {
        w.mode = PaddingMode::kEXPLICIT_ROUND_DOWN;
        for (size_t i = 0; i < w.after.size(); ++i)
            w.after[i] += w.strides[i] - 1;
    }
    double size = 1;
    for (int64_t k : w.kernel)
        size *= double(k);
    if (spatial == 1) {
        t = &ctx.unsqueeze(*t, {2});
        w.prependUnit();
    }
    auto& pool = ctx.added(ctx.network().addPoolingNd(*t, nvinfer1::PoolingType::kAVERAGE, makeDims(w.kernel)));
    pool.setStrideNd(makeDims(w.strides));
    pool.setPaddingMode(w.mode);
    pool.setPrePadding(makeDims(w.before));
    pool.setPostPadding(makeDims(w.after));
    pool.setAverageCountExcludesPadding(false);
    ITensor& y = ctx.out(pool);
    t = clip ? &withoutEmptyWindows(ctx, y, *t, w) : &y;
    if (spatial == 1)
        t = &ctx.squeeze(*t, {2});
    ctx.setOutput(0, power(ctx, ctx.elementwise(*t, ctx.scalarLike(size, *t), Op::kPROD), 1.0 / double(p)));
}

} // namespace

void register_composites_pooling(ImporterMap& map)
{
    map.add("LpPool", importLpPool);
    map.add("GlobalLpPool", importLpPool);
}

} // namespace tw::onnx
