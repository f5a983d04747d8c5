// SPDX-License-Identifier: Apache-2.0
// Operators on quantized tensors that ONNX Runtime's quantizer writes beside QLinearConv and QLinearMatMul, in domain
// com.microsoft: the numbers that the tensors stand for, a function of them, and the numbers of the result.
#include "onnx/quantized.h"

namespace tw::onnx {

namespace {

using Op = nvinfer1::ElementWiseOperation;

// At inputs scale and zero, for the output.
Quantized resultAt(ImportContext& ctx, int scale, int zero)
{
    Quantized const y{Value(), standing(ctx, ctx.input(scale)), zeroPoint(ctx, zero)};
    if (y.scale.type() != DataType::kFLOAT)
        ctx.invalid(fmt::format("input {}, a scale, is {}, not FLOAT", scale, typeName(y.scale.type())));
    return y;
}

template <Op op>
void importQLinearPair(ImportContext& ctx)
{
    ITensor& a = realNumbers(ctx, quantized(ctx, 0, 1, 2), -1);
    ITensor& b = realNumbers(ctx, quantized(ctx, 3, 4, 5), -1);
    ctx.setOutput(0, quantizedNumbers(ctx, ctx.elementwise(a, b, op), resultAt(ctx, 6, 7), -1));
}

// f of the first input, whose scale and zero point are inputs 1 and 2; those of the result 3 and 4.
template <class F>
void importQLinearFunction(ImportContext& ctx, F const& f)
{
    ITensor& x = realNumbers(ctx, quantized(ctx, 0, 1, 2), -1);
    ctx.setOutput(0, quantizedNumbers(ctx, f(x), resultAt(ctx, 3, 4), -1));
}

void checkChannelsFirst(ImportContext const& ctx)
{
    ctx.check(ctx.attrInt("channels_last", 0) == 0, "channels_last cannot be imported");
}

void importGlobalAverage(ImportContext& ctx)
{
    checkChannelsFirst(ctx);
    importQLinearFunction(ctx, [&](ITensor& x) -> ITensor& {
        int const rank = x.getDimensions().nbDims;
        ctx.check(rank >= 3, "input of shape " + describe(x.getDimensions()) + " has no spatial dimension");
        std::vector<int> axes = allAxes(rank);
        axes.erase(axes.begin(), axes.begin() + 2);
        return ctx.reduce(x, nvinfer1::ReduceOperation::kAVG, axes, true);
    });
}

void importQLinearConcat(ImportContext& ctx)
{
    Quantized const y = resultAt(ctx, 0, 1);
    std::vector<ITensor*> parts;
    for (int i = 2; i + 1 < ctx.nbInputs(); i += 3)
        parts.push_back(&realNumbers(ctx, quantized(ctx, i, i + 1, i + 2), -1));
    if (parts.empty())
        ctx.invalid("there is nothing to concatenate");
    int const axis = ctx.axis(ctx.requireInt("axis"), parts[0]->getDimensions().nbDims);
    ctx.setOutput(0, quantizedNumbers(ctx, ctx.concat(parts, axis), y, -1));
}

void importQLinearSoftmax(ImportContext& ctx)
{
    // Before opset 13 the axes from `axis` on count as one.
    bool const isOld = ctx.attrInt("opset", 13) < 13;
    importQLinearFunction(ctx, [&](ITensor& x) -> ITensor& {
        int const rank = x.getDimensions().nbDims, axis = ctx.axis(ctx.attrInt("axis", isOld ? 1 : -1), rank);
        ctx.check(!isOld || axis == rank - 1, "a softmax over several axes cannot be imported");
        return softmax(ctx, x, axis);
    });
}

} // namespace

void register_composites_quantized_functions(ImporterMap& map)
{
    using nvinfer1::ActivationType;
    auto add = [&](char const* op, Importer run) { map.add(op, run, 1, ImporterMap::kNewestOpset, kMicrosoft); };
    add("QLinearAdd", importQLinearPair<Op::kSUM>);
    add("QLinearMul", importQLinearPair<Op::kPROD>);
    add("QLinearConcat", importQLinearConcat);
    add("QLinearGlobalAveragePool", importGlobalAverage);
    add("QLinearAveragePool", [](ImportContext& ctx) {
        checkChannelsFirst(ctx);
        importQLinearFunction(ctx, [&](ITensor& x) -> ITensor& { return averagePooled(ctx, x); });
    });
    add("QLinearSigmoid", [](ImportContext& ctx) {
        importQLinearFunction(ctx, [&](ITensor& x) -> ITensor& { return ctx.activation(x, ActivationType::kSIGMOID); });
    });
    add("QLinearLeakyRelu", [](ImportContext& ctx) {
        importQLinearFunction(ctx, [&](ITensor& x) -> ITensor& {
            return ctx.activation(x, ActivationType::kLEAKY_RELU, ctx.attrFloat("alpha", 0.01F));
        });
    });
    add("QLinearSoftmax", importQLinearSoftmax);
}

} // namespace tw::onnx
