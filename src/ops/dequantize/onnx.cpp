// SPDX-License-Identifier: Apache-2.0
// DequantizeLinear. An INT32 initializer, a bias as ONNX Runtime's quantizer writes it, becomes FLOAT at once.
#include <algorithm>

#include "onnx/importer.h"

namespace tw::onnx {

using nvinfer1::ElementWiseOperation;

namespace {

void importBias(ImportContext& ctx, Constant const& x)
{
    QuantizationScale const s = readQuantizationScale(ctx, DataType::kINT32);
    if (ctx.asLayers()) {
        ITensor* scale = &ctx.asTensor(Value(s.scale));
        Dims dims = unitDims(x.dims.nbDims);
        if (s.axis >= 0)
            dims.d[s.axis] = int32_t(s.scale.count);
        ITensor& numbers = ctx.cast(ctx.asTensor(Value(x)), s.scale.type);
        return ctx.setOutput(0, ctx.elementwise(numbers, ctx.reshape(*scale, dims), ElementWiseOperation::kPROD));
    }
    int64_t inner = 1;
    for (int i = s.axis + 1; s.axis >= 0 && i < x.dims.nbDims; ++i)
        inner *= x.dims.d[i];
    Constant y = ctx.newConstant(s.scale.type, x.dims);
    for (int64_t i = 0; i < y.count; ++i) {
        float const scale = float(s.scale.floatAt(s.axis < 0 ? 0 : i / inner % s.scale.count));
        ctx.store(y, i, float(x.intAt(i)) * scale);
    }
    ctx.setOutput(0, ctx.computed(y));
}

void importDequantizeLinear(ImportContext& ctx)
{
    if (dequantizedLessZeroPoint(ctx) || dequantizedAsNumbers(ctx) || dequantizedWithZeroPoint(ctx))
        return;
    Value const& x = ctx.input(0);
    ctx.check(x.type() != DataType::kUINT8 && !(x.isConstant() && x.constant().integers == Integers::kUint8),
              fmt::format("its input is UINT8; quantization is symmetric, to INT8: {}", kSignedOrAsked));
    if (x.isConstant() && x.type() == DataType::kINT32)
        return importBias(ctx, x.constant());
    ctx.check(x.type() == DataType::kINT8, "its input is " + std::string(typeName(x.type())) +
                                               "; INT8 tensors can be dequantized, and INT32 initializers");
    QuantizationScale const s = readQuantizationScale(ctx, DataType::kINT8);
    auto& layer = ctx.added(ctx.network().addDequantize(ctx.tensor(0), scaleTensor(ctx, s)));
    if (s.axis >= 0)
        layer.setAxis(s.axis);
    if (s.scale.type == DataType::kHALF)
        layer.setOutputType(0, DataType::kHALF);
    ctx.setOutput(0, ctx.out(layer));
}

} // namespace

void register_dequantize(ImporterMap& map)
{
    map.add("DequantizeLinear", importDequantizeLinear, 10);
}

} // namespace tw::onnx
