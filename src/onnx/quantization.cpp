// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "onnx/importer.h"

namespace tw::onnx {

namespace {

void checkZeroPoint(ImportContext& ctx, DataType type, int64_t scales)
{
    if (!ctx.hasInput(2))
        return;
    Value const& v = ctx.input(2);
    ctx.check(
        v.type() != DataType::kUINT8 && !(v.isConstant() && v.constant().isUint8),
        "its zero point is UINT8; quantization is symmetric, to INT8 with zero points of 0: export the model with "
        "signed activations and weights");
    Constant const& zero = ctx.constant(2, "zero point");
    if (zero.type != type)
        ctx.invalid(phrase("its zero point is ", typeName(zero.type), ", not ", typeName(type)));
    if (zero.count != 1 && zero.count != scales)
        ctx.invalid(phrase("it has ", zero.count, " zero points for ", scales, " scales"));
    for (int64_t i = 0; i < zero.count; ++i)
        ctx.check(zero.intAt(i) == 0, phrase("its zero point is ", zero.intAt(i),
                                             zero.count > 1 ? " for index " + std::to_string(i) : std::string(),
                                             "; quantization is symmetric, zero points other than 0 are not possible"));
}

} // namespace

QuantizationScale readQuantizationScale(ImportContext& ctx, DataType type)
{
    QuantizationScale out;
    out.scale = ctx.constant(1, "scale");
    Constant const& scale = out.scale;
    ctx.check(ctx.attrInt("block_size", 0) == 0, "scales for blocks (attribute 'block_size') are not possible");
    if (!isFloating(scale.type))
        ctx.invalid(phrase("its scale is ", typeName(scale.type), ", not FLOAT or HALF"));
    ctx.check(scale.dims.nbDims <= 1 || scale.count == 1,
              "its scale has the shape " + describe(scale.dims) + "; a scalar or one dimension is possible");
    ctx.check(scale.count > 0, "its scale has no elements");
    Dims const x = ctx.input(0).dims();
    if (scale.count > 1) {
        ctx.check(ctx.opset() >= 13, "scales for each channel need opset 13");
        out.axis = ctx.axis(ctx.attrInt("axis", 1), x.nbDims);
        if (x.d[out.axis] >= 0 && x.d[out.axis] != scale.count)
            ctx.invalid(phrase("it has ", scale.count, " scales for dimension ", out.axis, " of ", describe(x)));
    }
    for (int64_t i = 0; i < scale.count; ++i)
        ctx.check(scale.floatAt(i) > 0 && std::isfinite(scale.floatAt(i)),
                  phrase("its scale is ", scale.floatAt(i),
                         scale.count > 1 ? " for index " + std::to_string(i) : std::string(),
                         "; scales must be positive and finite"));
    checkZeroPoint(ctx, type, scale.count);
    return out;
}

ITensor& scaleTensor(ImportContext& ctx, QuantizationScale const& s)
{
    Dims const flat = s.axis < 0 ? Dims{0, {}} : Dims{1, {int32_t(s.scale.count)}};
    Constant scale = ctx.reshaped(s.scale, flat);
    if (scale.computed) {
        ctx.decideBy(Value(scale));
        scale.computed = nullptr; // these layers want a constant
    }
    return ctx.asTensor(Value(scale));
}

} // namespace tw::onnx
