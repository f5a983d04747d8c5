// SPDX-License-Identifier: Apache-2.0
// MaxPool, AveragePool and their global forms. One spatial dimension runs as a 2-D window of height 1.
#include <algorithm>
#include <limits>

#include "importers/common/window.h"
#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using nvinfer1::PaddingMode;
using nvinfer1::PoolingType;

// IPoolingLayer has no dilation, and does not say where a maximum stands: along each axis in turn, the maximum (or the sum) of
// one strided slice for each window position. Outside the input a slice gives the least number. `places`, where it is not
// null: a number for each element of the input, of which those of the maxima become. The last axis goes first, so that
// of equal elements the first is taken.
ITensor& dilated(ImportContext& ctx, ITensor& input, WindowAttrs const& window, nvinfer1::ElementWiseOperation op,
                 ITensor** places = nullptr)
{
    constexpr int64_t kMostSlices = 256; // of an axis: each is a layer
    ITensor* x = &input;
    int const rank = x->getDimensions().nbDims, spatial = int(window.kernel.size());
    DataType const type = x->getType();
    double const least = op == nvinfer1::ElementWiseOperation::kSUM ? 0
                         : type == DataType::kINT8                  ? -128.0
                                                                    : -std::numeric_limits<double>::infinity();
    ITensor& fill = ctx.asTensor(Value(ctx.filled(least, type, Dims{0, {}})));
    bool const same = window.mode == PaddingMode::kSAME_UPPER || window.mode == PaddingMode::kSAME_LOWER;
    for (int i = spatial - 1; i >= 0; --i) {
        size_t const axis = size_t(rank - spatial + i);
        int64_t const stride = window.strides[i], dilation = window.dilations[i], kernel = window.kernel[i];
        int64_t const extent = window.extent(size_t(i));
        ctx.check(kernel <= kMostSlices, fmt::format("attribute 'kernel_shape' is above {} together with dilations or "
                                                     "indices, which IPoolingLayer does not have",
                                                     kMostSlices));
        Sizes sizes = ctx.sizesOf(*x), strides(size_t(rank), Size(1)), start(size_t(rank), Size(0));
        Size const in = sizes[axis];
        Size out, before(window.before[i]);
        if (same) {
            ctx.check(in.known(), "auto_pad with dilations or indices needs an input of known shape");
            out = Size((in.value + stride - 1) / stride);
            int64_t const total = std::max<int64_t>((out.value - 1) * stride + extent - in.value, 0);
            before = Size(window.mode == PaddingMode::kSAME_UPPER ? total / 2 : total - total / 2);
        } else {
            int64_t const up = window.mode == PaddingMode::kEXPLICIT_ROUND_UP ? stride - 1 : 0;
            Size const room = ctx.add(in, window.before[i] + window.after[i] - extent + up);
            out = ctx.add(ctx.floorDiv(room, stride), 1);
        }
        if (out.known() && out.value < (in.known() && in.value == 0 ? 0 : 1))
            ctx.invalid("the window does not fit into input of shape " + describe(input.getDimensions()));
        sizes[axis] = out;
        strides[axis] = Size(stride);
        ITensor *largest = nullptr, *where = nullptr;
        for (int64_t k = 0; k < kernel; ++k) {
            start[axis] = ctx.sub(k * dilation, before);
            ITensor& part = ctx.slice(*x, start, sizes, strides, nvinfer1::SliceMode::kFILL, &fill);
            if (places) {
                ITensor& here = ctx.slice(**places, start, sizes, strides, nvinfer1::SliceMode::kFILL);
                where = !where ? &here
                               : &ctx.select(ctx.elementwise(part, *largest, nvinfer1::ElementWiseOperation::kGREATER),
                                             here, *where);
            }
            largest = largest ? &ctx.elementwise(*largest, part, op) : &part;
        }
        x = largest;
        if (places)
            *places = where;
    }
    return *x;
}

// The mean of each window: its sum by the number of elements that count, those of the padding among them or not.
ITensor& dilatedMean(ImportContext& ctx, ITensor& x, WindowAttrs const& window, bool includesPadding)
{
    using Op = nvinfer1::ElementWiseOperation;
    ITensor& sum = dilated(ctx, x, window, Op::kSUM);
    Sizes sizes = ctx.sizesOf(x);
    sizes[0] = sizes[1] = Size(1);
    WindowAttrs counted = window;
    bool const isExplicit =
        window.mode == PaddingMode::kEXPLICIT_ROUND_DOWN || window.mode == PaddingMode::kEXPLICIT_ROUND_UP;
    ctx.check(!includesPadding || isExplicit, "auto_pad with dilations and count_include_pad cannot be imported");
    for (size_t i = 0; includesPadding && i < window.before.size(); ++i) {
        sizes[i + 2] = ctx.add(sizes[i + 2], window.before[i] + window.after[i]);
        counted.before[i] = counted.after[i] = 0;
    }
    ITensor& ones = ctx.expand(ctx.scalarLike(1, x), sizes);
    return ctx.elementwise(sum, dilated(ctx, ones, counted, Op::kSUM), Op::kDIV);
}

// Numbers of the elements of x in its memory; in images, `columnsFirst` counts down each column in turn.
ITensor& numbered(ImportContext& ctx, ITensor& x, bool columnsFirst)
{
    using Op = nvinfer1::ElementWiseOperation;
    Sizes const sizes = ctx.sizesOf(x);
    int const rank = int(sizes.size());
    std::vector<int> order = allAxes(rank); // the last is counted first
    if (columnsFirst)
        std::reverse(order.begin() + 2, order.end());
    ITensor* sum = nullptr;
    Size step(1);
    for (int i = rank - 1; i >= 0; --i) {
        int const axis = order[size_t(i)];
        std::vector<int> others = allAxes(rank);
        others.erase(others.begin() + axis);
        ITensor& at = ctx.unsqueeze(positions(ctx, sizes[size_t(axis)]), others);
        ITensor& term = ctx.elementwise(at, ctx.unsqueeze(ctx.asScalar(step), allAxes(rank)), Op::kPROD);
        sum = sum ? &ctx.elementwise(*sum, term, Op::kSUM) : &term;
        step = ctx.mul(step, sizes[size_t(axis)]);
    }
    return *sum;
}

ITensor& pooled(ImportContext& ctx, ITensor& input, PoolingType type)
{
    ITensor* x = &input;
    int const spatial = x->getDimensions().nbDims - 2;
    ctx.check(spatial >= 1 && spatial <= 3, "input of shape " + describe(x->getDimensions()) +
                                                " must have 1, 2 or 3 dimensions behind batch and channel");
    bool const isMax = type == PoolingType::kMAX, wantsPlaces = isMax && ctx.wantsOutput(1);
    ctx.check(!wantsPlaces || isFloating(x->getType()) || x->getType() == DataType::kINT8,
              "output 'Indices' of " + std::string(typeName(x->getType())) + " cannot be imported");
    WindowAttrs window = readWindow(ctx, spatial, {});
    for (int i = 0; i < spatial; ++i)
        ctx.check(window.before[i] >= 0 && window.after[i] >= 0, "attribute 'pads' must not be negative");
    Dims const d = x->getDimensions();
    bool clip = roundUp(ctx, window, {d.d + 2, d.d + d.nbDims});

    if (wantsPlaces || *std::max_element(window.dilations.begin(), window.dilations.end()) > 1) {
        clip = clip || window.mode == PaddingMode::kCAFFE_ROUND_UP;
        if (clip)
            window.mode = PaddingMode::kEXPLICIT_ROUND_UP;
        ITensor* places = wantsPlaces ? &numbered(ctx, *x, ctx.attrInt("storage_order", 0) != 0) : nullptr;
        ITensor& y =
            isMax ? dilated(ctx, *x, window, nvinfer1::ElementWiseOperation::kMAX, wantsPlaces ? &places : nullptr)
                  : dilatedMean(ctx, *x, window, ctx.attrInt("count_include_pad", 0) != 0);
        if (wantsPlaces)
            ctx.setOutput(1, clip ? withoutEmptyWindows(ctx, *places, *x, window) : *places);
        return clip ? withoutEmptyWindows(ctx, y, *x, window) : y;
    }
    if (spatial == 1) {
        x = &ctx.unsqueeze(*x, {2});
        window.prependUnit();
    }
    auto& pool = ctx.added(ctx.network().addPoolingNd(*x, type, makeDims(window.kernel)));
    pool.setStrideNd(makeDims(window.strides));
    pool.setPaddingMode(window.mode);
    pool.setPrePadding(makeDims(window.before));
    pool.setPostPadding(makeDims(window.after));
    if (!isMax)
        pool.setAverageCountExcludesPadding(ctx.attrInt("count_include_pad", 0) == 0);
    ITensor* y = &ctx.out(pool);
    if (clip)
        y = &withoutEmptyWindows(ctx, *y, *x, window);
    return spatial == 1 ? ctx.squeeze(*y, {2}) : *y;
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
} // namespace

ITensor& averagePooled(ImportContext& ctx, ITensor& x)
{
    return pooled(ctx, x, PoolingType::kAVERAGE);
}

ITensor& windowSums(ImportContext& ctx, ITensor& x, WindowAttrs const& window)
{
    return dilated(ctx, x, window, nvinfer1::ElementWiseOperation::kSUM);
}

void register_pooling(ImporterMap& map)
{
    map.add("MaxPool", [](auto& ctx) { ctx.setOutput(0, pooled(ctx, ctx.tensor(0), PoolingType::kMAX)); });
    map.add("AveragePool", [](auto& ctx) { ctx.setOutput(0, averagePooled(ctx, ctx.tensor(0))); });
    map.add("GlobalMaxPool", [](auto& ctx) { importGlobal(ctx, nvinfer1::ReduceOperation::kMAX); });
    map.add("GlobalAveragePool", [](auto& ctx) { importGlobal(ctx, nvinfer1::ReduceOperation::kAVG); });
}

} // namespace tw::onnx
