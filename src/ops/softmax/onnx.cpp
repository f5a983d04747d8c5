// SPDX-License-Identifier: Apache-2.0
// Softmax and LogSoftmax. Up to opset 12 all dimensions from the axis on are one slice.
#include "onnx/importer.h"

namespace tw::onnx {

// d - log(sum of exp(d)) with d = x - max: the logarithm of a softmax that has become zero would be -inf. Each d is
// made where it is read, so that neither reaches memory.
ITensor& softmax(ImportContext& ctx, ITensor& x, int axis)
{
    auto& layer = ctx.added(ctx.network().addSoftMax(x));
    layer.setAxes(1u << axis);
    return ctx.out(layer);
}

ITensor& logSoftmax(ImportContext& ctx, ITensor& x, int axis)
{
    ITensor& largest = ctx.reduce(x, nvinfer1::ReduceOperation::kMAX, {axis}, true);
    auto d = [&]() -> ITensor& { return ctx.elementwise(x, largest, nvinfer1::ElementWiseOperation::kSUB); };
    ITensor& sum =
        ctx.reduce(ctx.unary(d(), nvinfer1::UnaryOperation::kEXP), nvinfer1::ReduceOperation::kSUM, {axis}, true);
    return ctx.elementwise(d(), ctx.unary(sum, nvinfer1::UnaryOperation::kLOG), nvinfer1::ElementWiseOperation::kSUB);
}

namespace {

using nvinfer1::ElementWiseOperation;
using nvinfer1::ReduceOperation;
using nvinfer1::UnaryOperation;

void importWith(ImportContext& ctx, ITensor& (*make)(ImportContext&, ITensor&, int))
{
    ITensor& x = ctx.tensor(0);
    int const rank = x.getDimensions().nbDims;
    bool const flattens = ctx.opset() < 13;
    ctx.check(rank >= 1, "the input must have at least one dimension");
    int const axis = ctx.axis(ctx.attrInt("axis", flattens ? 1 : -1), rank);
    if (!flattens || axis == rank - 1) {
        ctx.setOutput(0, make(ctx, x, axis));
        return;
    }
    Sizes const sizes = ctx.sizesOf(x);
    Sizes const flat{ctx.product(Sizes(sizes.begin(), sizes.begin() + axis)),
                     ctx.product(Sizes(sizes.begin() + axis, sizes.end()))};
    ctx.setOutput(0, ctx.reshape(make(ctx, ctx.reshape(x, flat), 1), sizes));
}
} // namespace

void register_softmax(ImporterMap& map)
{
    map.add("Softmax", [](auto& ctx) { importWith(ctx, softmax); });
    map.add("LogSoftmax", [](auto& ctx) { importWith(ctx, logSoftmax); });
}

} // namespace tw::onnx
