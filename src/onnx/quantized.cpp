// SPDX-License-Identifier: Apache-2.0
#include "onnx/quantized.h"

#include <algorithm>
#include <cmath>

namespace tw::onnx {

using nvinfer1::ActivationType;
using nvinfer1::UnaryOperation;
using Op = nvinfer1::ElementWiseOperation;

void checkType(ImportContext& ctx, Value const& v, int i)
{
    ctx.check(isUint8(v) || v.integers() == Integers::kInt8 || (v.type() == DataType::kINT8 && v.isOneTensor()),
              fmt::format("input {} is {}; INT8 and UINT8 are possible", i,
                          v.integers() != Integers::kOfType ? nameOf(v.integers()) : typeName(v.type())));
}

Value zeroPoint(ImportContext& ctx, int i)
{
    Value const zero = ctx.optionalInput(i);
    if (!zero.isNull())
        checkType(ctx, zero, i);
    return zero;
}

Value standing(ImportContext& ctx, Value const& v)
{
    if (!v.isConstant())
        return v;
    ctx.decideBy(v);
    Constant c = v.constant();
    c.computed = nullptr;
    return Value(c);
}

Quantized quantized(ImportContext& ctx, int q, int scale, int zero)
{
    checkType(ctx, ctx.input(q), q);
    Quantized t{ctx.input(q), scale < 0 ? Value() : standing(ctx, ctx.input(scale)), zeroPoint(ctx, zero)};
    if (!t.scale.isNull() && !isFloating(t.scale.type()))
        ctx.invalid(fmt::format("input {}, a scale, is {}, not FLOAT or HALF", scale, typeName(t.scale.type())));
    if (!t.scale.isNull() && t.scale.type() == DataType::kHALF)
        t.scale = t.scale.isConstant() ? Value(ctx.converted(t.scale.constant(), DataType::kFLOAT))
                                       : Value(ctx.cast(t.scale.tensor(), DataType::kFLOAT));
    if (t.scale.isConstant())
        for (float s : t.scale.constant().floats())
            ctx.check(s > 0 && std::isfinite(s),
                      fmt::format("input {} holds {}; scales must be positive and finite", scale, s));
    return t;
}

bool isOneNumber(Value const& v)
{
    return v.isConstant() && v.constant().count == 1;
}

bool isOneZero(Value const& zero)
{
    return zero.isNull() || isOneNumber(zero);
}

int64_t zeroOf(Value const& zero)
{
    return zero.isNull() ? 0 : zero.constant().intAt(0);
}

int axisOf(ImportContext& ctx, Value const& x)
{
    return x.rank() > 1 ? ctx.axis(ctx.attrInt("axis", 1), x.rank()) : 0;
}

std::optional<Constant> lessZeroPoint(ImportContext& ctx, Value const& q, Value const& zero, int axis)
{
    if (!q.isConstant() || !(zero.isNull() || zero.isConstant()))
        return {};
    Constant const& w = q.constant();
    int64_t const zeros = zero.isNull() ? 0 : zero.constant().count;
    int64_t inner = 1;
    for (int i = axis + 1; i < w.dims.nbDims; ++i)
        inner *= w.dims.d[i];
    int64_t const channels = w.dims.nbDims > 0 ? w.dims.d[axis] : 1;
    if (zeros > 1 && zeros != channels)
        ctx.invalid(fmt::format("there are {} zero points for {} channels", zeros, channels));
    Constant y = ctx.newConstant(DataType::kINT8, w.dims);
    for (int64_t i = 0; i < w.count; ++i) {
        int64_t const number = w.later ? int64_t(w.later->integers.at(i)) : w.intAt(i);
        int64_t const v = number - (zeros ? zero.constant().intAt(zeros > 1 ? i / inner % channels : 0) : 0);
        if (v < -128 || v > 127)
            return {};
        ctx.store(y, i, double(v));
    }
    return y;
}

int64_t shiftOf(Value const& q, Value const& zero)
{
    return (isUint8(q) ? 128 : 0) - zeroOf(zero);
}

double raiseOf(Quantized const& y, bool isUint8)
{
    return double((isUint8 ? -128 : 0) + zeroOf(y.zero)) * y.scale.constant().floatAt(0);
}

ITensor& spread(ImportContext& ctx, ITensor& x, int rank, int axis)
{
    Dims const d = x.getDimensions();
    if (d.nbDims == rank)
        return x;
    Dims y = unitDims(rank);
    if (volume(d) != 1) {
        if (d.nbDims != 1 || axis < 0 || d.d[0] < 0)
            ctx.invalid(fmt::format("a scale or zero point has shape {}; the tensor has rank {}", describe(d), rank));
        y.d[axis] = d.d[0];
    }
    return ctx.reshape(x, y);
}

ITensor& centered(ImportContext& ctx, Quantized const& t, int axis)
{
    ITensor& x = wholeFloats(ctx, t.q);
    if (t.zero.isNull() || (isOneNumber(t.zero) && zeroOf(t.zero) == 0))
        return x;
    return ctx.elementwise(x, spread(ctx, wholeFloats(ctx, t.zero), x.getDimensions().nbDims, axis), Op::kSUB);
}

ITensor& dequantize(ImportContext& ctx, ITensor& x, Value const& scale, int axis)
{
    bool const isList = scale.constant().count > 1;
    Dims const dims = isList ? Dims{1, {int32_t(scale.constant().count)}} : Dims{0, {}};
    auto& layer = ctx.added(ctx.network().addDequantize(x, ctx.asTensor(Value(ctx.reshaped(scale.constant(), dims)))));
    if (isList)
        layer.setAxis(axis);
    return ctx.out(layer);
}

Value quantize(ImportContext& ctx, ITensor& v, Value const& scale, bool toUint8)
{
    ITensor& s = ctx.asTensor(Value(ctx.reshaped(scale.constant(), Dims{0, {}})));
    return Value(ctx.out(ctx.added(ctx.network().addQuantize(v, s))), toUint8 ? Integers::kUint8 : Integers::kOfType);
}

Value rounded(ImportContext& ctx, ITensor& x, Value const& zero, int axis)
{
    ITensor* y = &ctx.unary(x, UnaryOperation::kROUND);
    if (!zero.isNull())
        y = &ctx.elementwise(*y, spread(ctx, wholeFloats(ctx, zero), x.getDimensions().nbDims, axis), Op::kSUM);
    bool const isSigned = !zero.isNull() && !isUint8(zero);
    IntegerRange const r = rangeOf(isSigned ? Integers::kInt8 : Integers::kUint8);
    return Value(ctx.activation(*y, ActivationType::kCLIP, float(r.lowest), float(r.largest)),
                 isSigned ? Integers::kInt8 : Integers::kUint8);
}

ITensor& realNumbers(ImportContext& ctx, Quantized const& t, int axis)
{
    if (t.q.type() == DataType::kINT8 && t.q.isTensor() && isOneNumber(t.scale) && isOneZero(t.zero)) {
        Value const scale(ctx.converted(t.scale.constant(), DataType::kFLOAT));
        ITensor& v = dequantize(ctx, t.q.tensor(), scale, 0);
        double const up = double(shiftOf(t.q, t.zero)) * scale.constant().floatAt(0);
        return up == 0 ? v : ctx.elementwise(v, ctx.scalarLike(up, v), Op::kSUM);
    }
    InFloat const inFloat(ctx);
    ITensor& s = spread(ctx, ctx.cast(ctx.asTensor(t.scale), DataType::kFLOAT), t.q.rank(), axis);
    ITensor& y = ctx.elementwise(centered(ctx, t, axis), s, Op::kPROD);
    inFloat.apply();
    return y;
}

Value quantizedNumbers(ImportContext& ctx, ITensor& v, Quantized const& y, int axis)
{
    if (isOneNumber(y.scale) && isOneZero(y.zero)) {
        bool const toUint8 = y.zero.isNull() || isUint8(y.zero);
        double const up = raiseOf(y, toUint8);
        ITensor& moved = up == 0 ? v : ctx.elementwise(v, ctx.scalarLike(up, v), Op::kSUM);
        return quantize(ctx, moved, Value(ctx.converted(y.scale.constant(), DataType::kFLOAT)), toUint8);
    }
    InFloat const inFloat(ctx);
    ITensor& s = spread(ctx, ctx.cast(ctx.asTensor(y.scale), DataType::kFLOAT), v.getDimensions().nbDims, axis);
    Value const q = rounded(ctx, ctx.elementwise(v, s, Op::kDIV), y.zero, axis);
    inFloat.apply();
    return q;
}

// ---- QuantizeLinear and DequantizeLinear

namespace {

// Neither INT8 with zero points of 0 alone.
bool isAsymmetric(ImportContext& ctx)
{
    if (!ctx.takesZeroPoints() || !ctx.hasInput(0) || !ctx.hasInput(1))
        return false;
    Value const &x = ctx.input(0), zero = ctx.optionalInput(2);
    bool const isOther = isUint8(x) || x.integers() == Integers::kInt8;
    if (zero.isNull())
        return isOther || !ctx.input(1).isConstant();
    if (isOther || isUint8(zero) || !zero.isConstant() || !ctx.input(1).isConstant())
        return true;
    auto const zeros = zero.constant().ints();
    return zero.type() == DataType::kINT8 && std::ranges::any_of(zeros, [](int64_t z) { return z != 0; });
}

} // namespace

bool quantizedWithZeroPoint(ImportContext& ctx)
{
    if (!isAsymmetric(ctx))
        return false;
    Quantized const y{Value(), standing(ctx, ctx.input(1)), zeroPoint(ctx, 2)};
    ITensor& x = ctx.cast(ctx.tensor(0), DataType::kFLOAT);
    int const axis = axisOf(ctx, Value(x));
    ctx.setOutput(0, quantizedNumbers(ctx, x, y, axis));
    return true;
}

bool dequantizedLessZeroPoint(ImportContext& ctx)
{
    bool const isByte = ctx.hasInput(0) && (ctx.input(0).type() == DataType::kINT8 || isUint8(ctx.input(0)));
    if (!isByte || ctx.attrInt("block_size", 0) != 0 || !isAsymmetric(ctx) || !ctx.input(1).isConstant() ||
        !isFloating(ctx.input(1).type()))
        return false;
    Value const& q = ctx.input(0);
    int const axis = axisOf(ctx, q);
    auto const weights = lessZeroPoint(ctx, q, zeroPoint(ctx, 2), axis);
    if (!weights)
        return false;
    Value const scale = standing(ctx, ctx.input(1));
    Value const floats(ctx.converted(scale.constant(), DataType::kFLOAT));
    ITensor& w = ctx.asTensor(Value(*weights));
    ctx.setOutput(0, ctx.cast(dequantize(ctx, w, floats, axis), scale.type()));
    return true;
}

bool dequantizedWithZeroPoint(ImportContext& ctx)
{
    if (!isAsymmetric(ctx))
        return false;
    checkType(ctx, ctx.input(0), 0);
    Quantized const t{ctx.input(0), standing(ctx, ctx.input(1)), zeroPoint(ctx, 2)};
    int const axis = axisOf(ctx, t.q);
    DataType const type = t.scale.type();
    ctx.check(isFloating(type), "its scale is " + std::string(typeName(type)) + ", not FLOAT or HALF");
    ctx.setOutput(0, ctx.cast(realNumbers(ctx, t, axis), type));
    return true;
}

} // namespace tw::onnx
