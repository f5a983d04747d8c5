// SPDX-License-Identifier: Apache-2.0
// The ten reductions. Axes are an attribute, and an input from opset 13 (ReduceSum) or 18 (the others) on, which the
// run may compute.
#include <limits>

#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using nvinfer1::ElementWiseOperation;
using nvinfer1::ReduceOperation;
using nvinfer1::UnaryOperation;

struct Form
{
    std::vector<int> axes;
    bool keepDims = true;
    bool nothing = false; // the output is the input
    Sizes computed;       // 1 for axes that are reduced, where the run decides that; empty: `axes` holds
};

// 1 where both are equal, else 0.
Size isEqual(ImportContext& ctx, Size const& a, Size const& b)
{
    Size const distance = ctx.max(ctx.sub(a, b), ctx.sub(b, a));
    return ctx.sub(1, ctx.min(distance, 1));
}

// Which of the axes are among computed ones.
Sizes chosen(ImportContext& ctx, int rank)
{
    Sizes const axes = ctx.sizesFrom(ctx.input(1));
    Sizes flags;
    for (int d = 0; d < rank; ++d) {
        Size flag(0);
        for (Size const& axis : axes)
            flag = ctx.max(flag, ctx.max(isEqual(ctx, axis, d), isEqual(ctx, axis, d - rank)));
        flags.push_back(flag);
    }
    return flags;
}

Form formOf(ImportContext& ctx, int rank)
{
    Form form;
    form.keepDims = ctx.attrInt("keepdims", 1) != 0;
    // Of an input of the network 8.5 says that it must be an initializer.
    bool const hasTensor = ctx.hasInput(1) && !ctx.isConstant(1) && !ctx.tensor(1).isNetworkInput();
    if (hasTensor && ctx.input(1).dims().nbDims == 1 && ctx.input(1).dims().d[0] > 0) {
        form.computed = chosen(ctx, rank);
        return form;
    }
    std::vector<int64_t> const axes =
        ctx.hasInput(1) && !hasTensor ? ctx.constantInts(1, "axes") : ctx.attrInts("axes");
    ctx.check(!hasTensor || ctx.input(1).dims().d[0] == 0, "axes are computed, and their number is not known");
    if (axes.empty() && ctx.attrInt("noop_with_empty_axes", 0) != 0)
        form.nothing = true;
    else
        form.axes = axes.empty() ? allAxes(rank) : ctx.axes(axes, rank);
    return form;
}

// y, whose reduced dimensions are 1, without them: of `count` axes.
ITensor& withoutReduced(ImportContext& ctx, ITensor& y, Sizes const& flags, int count)
{
    Sizes const all = ctx.sizesOf(y);
    Sizes before{Size(0)}; // how many axes in front of each are kept
    for (size_t d = 0; d < all.size(); ++d)
        before.push_back(ctx.add(before[d], ctx.sub(1, flags[d])));
    Sizes kept;
    for (int i = 0; i < int(all.size()) - count; ++i) {
        Size size(0);
        for (size_t d = size_t(i); d < all.size(); ++d) {
            Size const isHere = ctx.mul(isEqual(ctx, before[d], i), ctx.sub(1, flags[d]));
            size = ctx.add(size, ctx.mul(isHere, all[d]));
        }
        kept.push_back(size);
    }
    return ctx.reshape(y, kept);
}

// Along each axis in turn: of the reduction with all that it is made of behind it, the first element or the others.
ITensor& reducedByFlags(ImportContext& ctx, ITensor& x, ReduceOperation op, Form const& form, bool keepDims)
{
    ITensor* y = &x;
    int const rank = x.getDimensions().nbDims;
    for (int d = 0; d < rank; ++d) {
        Sizes size = ctx.sizesOf(*y), start(size_t(rank), Size(0));
        Size const flag = form.computed[size_t(d)], others = ctx.sub(1, flag);
        size[size_t(d)] = ctx.add(flag, ctx.mul(others, size[size_t(d)]));
        start[size_t(d)] = others;
        ITensor& both = ctx.concat({&ctx.reduce(*y, op, {d}, true), y}, d);
        y = &ctx.slice(both, start, size, Sizes(size_t(rank), Size(1)));
    }
    return keepDims ? *y : withoutReduced(ctx, *y, form.computed, ctx.input(1).dims().d[0]);
}

ITensor& reduced(ImportContext& ctx, ITensor& x, ReduceOperation op, Form const& form, bool keepDims)
{
    if (form.nothing)
        return x;
    return form.computed.empty() ? ctx.reduce(x, op, form.axes, keepDims) : reducedByFlags(ctx, x, op, form, keepDims);
}

template <ReduceOperation op>
void importPlain(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    Form const form = formOf(ctx, x.getDimensions().nbDims);
    ctx.setOutput(0, reduced(ctx, x, op, form, form.keepDims));
}

// Largest and least: of truth values by way of INT32, where the largest of none is below every number, and no truth.
template <ReduceOperation op>
void importExtreme(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    bool const isTruth = x.getType() == DataType::kBOOL;
    Form const form = formOf(ctx, x.getDimensions().nbDims);
    ITensor& y = reduced(ctx, isTruth ? ctx.cast(x, DataType::kINT32) : x, op, form, form.keepDims);
    ctx.setOutput(0, isTruth ? ctx.elementwise(y, ctx.scalarLike(0, y), ElementWiseOperation::kGREATER) : y);
}

// Of f(x).
template <class F>
ITensor& sumOf(ImportContext& ctx, F const& f)
{
    ITensor& x = ctx.tensor(0);
    Form const form = formOf(ctx, x.getDimensions().nbDims);
    return reduced(ctx, f(x), ReduceOperation::kSUM, form, form.keepDims);
}

ITensor& sumSquare(ImportContext& ctx)
{
    return sumOf(ctx, [&](ITensor& x) -> ITensor& { return ctx.elementwise(x, x, ElementWiseOperation::kPROD); });
}

// m + log(sum of exp(x - m)) with m = max of x, so that exp cannot overflow; m is kept finite, as inf - inf is NaN.
void importLogSumExp(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    Form const form = formOf(ctx, x.getDimensions().nbDims);
    if (form.nothing || (form.axes.empty() && form.computed.empty())) { // log(exp(x))
        ctx.setOutput(0, x);
        return;
    }
    float const largest = x.getType() == DataType::kHALF ? 65504.0f : std::numeric_limits<float>::max();
    ITensor& m = ctx.activation(reduced(ctx, x, ReduceOperation::kMAX, form, true), nvinfer1::ActivationType::kCLIP,
                                -largest, largest);
    ITensor& d = ctx.elementwise(x, m, ElementWiseOperation::kSUB);
    ITensor& s = reduced(ctx, ctx.unary(d, UnaryOperation::kEXP), ReduceOperation::kSUM, form, true);
    ITensor& y = ctx.elementwise(ctx.unary(s, UnaryOperation::kLOG), m, ElementWiseOperation::kSUM);
    if (form.keepDims)
        return ctx.setOutput(0, y);
    ctx.setOutput(0, form.computed.empty() ? ctx.squeeze(y, form.axes)
                                           : withoutReduced(ctx, y, form.computed, ctx.input(1).dims().d[0]));
}

} // namespace

void register_reduce(ImporterMap& map)
{
    map.add("ReduceSum", importPlain<ReduceOperation::kSUM>);
    map.add("ReduceProd", importPlain<ReduceOperation::kPROD>);
    map.add("ReduceMax", importExtreme<ReduceOperation::kMAX>);
    map.add("ReduceMin", importExtreme<ReduceOperation::kMIN>);
    map.add("ReduceMean", importPlain<ReduceOperation::kAVG>);
    map.add("ReduceL1", [](auto& ctx) {
        ctx.setOutput(0, sumOf(ctx, [&](ITensor& x) -> ITensor& { return ctx.unary(x, UnaryOperation::kABS); }));
    });
    map.add("ReduceL2", [](auto& ctx) { ctx.setOutput(0, ctx.unary(sumSquare(ctx), UnaryOperation::kSQRT)); });
    map.add("ReduceLogSum", [](auto& ctx) {
        ctx.setOutput(0, ctx.unary(sumOf(ctx, [](ITensor& x) -> ITensor& { return x; }), UnaryOperation::kLOG));
    });
    map.add("ReduceLogSumExp", importLogSumExp);
    map.add("ReduceSumSquare", [](auto& ctx) { ctx.setOutput(0, sumSquare(ctx)); });
}

} // namespace tw::onnx
