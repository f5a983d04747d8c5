// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear. Without a zero point ONNX means UINT8; 8.5 takes it as INT8, and so does this importer, with a warning.
#include "onnx/importer.h"
#include "onnx/weights.h"

namespace tw::onnx {

namespace {

constexpr int64_t kInt8 = 3; // TensorProto::INT8

void importQuantizeLinear(ImportContext& ctx)
{
    if (quantizedAsNumbers(ctx) || quantizedWithZeroPoint(ctx))
        return;
    int64_t const asked = ctx.attrInt("output_dtype", 0);
    ctx.check(asked == 0 || asked == kInt8,
              "attribute 'output_dtype' asks for " + onnxTypeName(int(asked)) + "; quantization is to INT8");
    ctx.check(isFloating(ctx.input(0).type()),
              "its input is " + std::string(typeName(ctx.input(0).type())) + ", not FLOAT or HALF");
    QuantizationScale const s = readQuantizationScale(ctx, DataType::kINT8);
    if (!ctx.hasInput(2) && asked == 0)
        ctx.warn("QuantizeLinear '" + ctx.name() + "' has no zero point, which ONNX reads as UINT8: it becomes INT8");
    auto& layer = ctx.added(ctx.network().addQuantize(ctx.tensor(0), scaleTensor(ctx, s)));
    if (s.axis >= 0)
        layer.setAxis(s.axis);
    ctx.setOutput(0, ctx.out(layer));
}

} // namespace

void register_quantize(ImporterMap& map)
{
    map.add("QuantizeLinear", importQuantizeLinear, 10);
}

} // namespace tw::onnx
