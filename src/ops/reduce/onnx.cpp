// SPDX-License-Identifier: Apache-2.0
// The ten reductions. Axes are an attribute, and an input from opset 13 (ReduceSum) or 18 (the others) on.
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
};

Form formOf(ImportContext& ctx, int rank)
{
    Form form;
    form.keepDims = ctx.attrInt("keepdims", 1) != 0;
    std::vector<int64_t> const axes = ctx.hasInput(1) ? ctx.constantInts(1, "axes") : ctx.attrInts("axes");
    if (axes.empty() && ctx.attrInt("noop_with_empty_axes", 0) != 0)
        form.nothing = true;
    else
        form.axes = axes.empty() ? allAxes(rank) : ctx.axes(axes, rank);
    return form;
}

template <ReduceOperation op>
void importPlain(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    Form const form = formOf(ctx, x.getDimensions().nbDims);
    ctx.setOutput(0, form.nothing ? x : ctx.reduce(x, op, form.axes, form.keepDims));
}

ITensor& sum(ImportContext& ctx, ITensor& x, Form const& form)
{
    return form.nothing ? x : ctx.reduce(x, ReduceOperation::kSUM, form.axes, form.keepDims);
}

void importL1(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    Form const form = formOf(ctx, x.getDimensions().nbDims);
    ctx.setOutput(0, sum(ctx, ctx.unary(x, UnaryOperation::kABS), form));
}
ITensor& sumSquare(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    Form const form = formOf(ctx, x.getDimensions().nbDims);
    return sum(ctx, ctx.elementwise(x, x, ElementWiseOperation::kPROD), form);
}
void importSumSquare(ImportContext& ctx)
{
    ctx.setOutput(0, sumSquare(ctx));
}
void importL2(ImportContext& ctx)
{
    ctx.setOutput(0, ctx.unary(sumSquare(ctx), UnaryOperation::kSQRT));
}
void importLogSum(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    Form const form = formOf(ctx, x.getDimensions().nbDims);
    ctx.setOutput(0, ctx.unary(sum(ctx, x, form), UnaryOperation::kLOG));
}

// m + log(sum of exp(x - m)) with m = max of x, so that exp cannot overflow; m is kept finite, as inf - inf is NaN.
void importLogSumExp(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    Form const form = formOf(ctx, x.getDimensions().nbDims);
    if (form.nothing || form.axes.empty()) { // log(exp(x))
        ctx.setOutput(0, x);
        return;
    }
    float const largest = x.getType() == DataType::kHALF ? 65504.0f : std::numeric_limits<float>::max();
    ITensor& m = ctx.activation(ctx.reduce(x, ReduceOperation::kMAX, form.axes, true), nvinfer1::ActivationType::kCLIP,
                                -largest, largest);
    ITensor& d = ctx.elementwise(x, m, ElementWiseOperation::kSUB);
    ITensor& s = ctx.reduce(ctx.unary(d, UnaryOperation::kEXP), ReduceOperation::kSUM, form.axes, true);
    ITensor& y = ctx.elementwise(ctx.unary(s, UnaryOperation::kLOG), m, ElementWiseOperation::kSUM);
    ctx.setOutput(0, form.keepDims ? y : ctx.squeeze(y, form.axes));
}

} // namespace

void register_reduce(ImporterMap& map)
{
    map.add("ReduceSum", importPlain<ReduceOperation::kSUM>);
    map.add("ReduceProd", importPlain<ReduceOperation::kPROD>);
    map.add("ReduceMax", importPlain<ReduceOperation::kMAX>);
    map.add("ReduceMin", importPlain<ReduceOperation::kMIN>);
    map.add("ReduceMean", importPlain<ReduceOperation::kAVG>);
    map.add("ReduceL1", importL1);
    map.add("ReduceL2", importL2);
    map.add("ReduceLogSum", importLogSum);
    map.add("ReduceLogSumExp", importLogSumExp);
    map.add("ReduceSumSquare", importSumSquare);
}

} // namespace tw::onnx
