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
    ctx.check(v.type() != DataType::kUINT8 && !(v.isConstant() && v.constant().integers == Integers::kUint8),
              fmt::format("its zero point is UINT8; quantization is symmetric, to INT8 with zero points of 0: {}",
                          kSignedOrAsked));
    Constant const& zero = ctx.constant(2, "zero point");
    if (zero.type != type)
        ctx.invalid(fmt::format("its zero point is {}, not {}", typeName(zero.type), typeName(type)));
    if (zero.count != 1 && zero.count != scales)
        ctx.invalid(fmt::format("it has {} zero points for {} scales", zero.count, scales));
    for (int64_t i = 0; i < zero.count; ++i)
        ctx.check(
            zero.intAt(i) == 0,
            fmt::format(
                "its zero point is {}{}; quantization is symmetric, zero points other than 0 are not possible: {}",
                zero.intAt(i), zero.count > 1 ? fmt::format(" for index {}", i) : std::string(), kSignedOrAsked));
}

} // namespace

QuantizationScale readQuantizationScale(ImportContext& ctx, DataType type)
{
    QuantizationScale out;
    out.scale = ctx.constant(1, "scale");
    Constant const& scale = out.scale;
    if (!isFloating(scale.type))
        ctx.invalid(fmt::format("its scale is {}, not FLOAT or HALF", typeName(scale.type)));
    ctx.check(scale.dims.nbDims <= 1 || scale.count == 1,
              "its scale has the shape " + describe(scale.dims) + "; a scalar or one dimension is possible");
    ctx.check(scale.count > 0, "its scale has no elements");
    Dims const x = ctx.input(0).dims();
    if (scale.count > 1) {
        ctx.check(ctx.opset() >= 13, "scales for each channel need opset 13");
        out.axis = ctx.axis(ctx.attrInt("axis", 1), x.nbDims);
        if (x.d[out.axis] >= 0 && x.d[out.axis] != scale.count)
            ctx.invalid(fmt::format("it has {} scales for dimension {} of {}", scale.count, out.axis, describe(x)));
    }
    for (int64_t i = 0; i < scale.count; ++i)
        ctx.check(scale.floatAt(i) > 0 && std::isfinite(scale.floatAt(i)),
                  fmt::format("its scale is {}{}; scales must be positive and finite", scale.floatAt(i),
                              scale.count > 1 ? fmt::format(" for index {}", i) : std::string()));
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
