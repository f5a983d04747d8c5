// SPDX-License-Identifier: Apache-2.0
// Identity, Cast, CastLike. The API converts UINT8 from and to floating types only, so integers and truth values go through
// FLOAT.
#include "onnx/importer.h"
#include "onnx/integers.h"
#include "onnx/weights.h"

namespace tw::onnx {

namespace {

void importIdentity(ImportContext& ctx)
{
    Value const& x = ctx.input(0);
    ctx.setOutput(0, x.isTensor() ? Value(ctx.identity(x.tensor()), x.integers()) : x);
}

// To a small integer type the number is truncated and wraps, as a conversion in hardware does it.
Value castToIntegers(ImportContext& ctx, Value const& x, Integers integers)
{
    if (x.integers() == integers)
        return x;
    ITensor& numbers =
        x.integers() != Integers::kOfType ? wholeIntegers(ctx, x) : ctx.cast(ctx.asTensor(x), DataType::kINT32);
    IntegerRange const from = rangeOf(x.integers()), to = rangeOf(integers);
    bool const fits = from.lowest >= to.lowest && from.largest <= to.largest;
    return Value(fits ? numbers : wrapped(ctx, numbers, integers), integers);
}

Value castTo(ImportContext& ctx, Value const& x, DataType to, Integers integers)
{
    bool const isOther = x.integers() != Integers::kOfType;
    if (integers != Integers::kOfType && to == DataType::kINT32)
        return castToIntegers(ctx, x, integers);
    if (to == DataType::kINT8 && isOther) // numbers, as those of a quantized tensor are
        return castToIntegers(ctx, x, Integers::kInt8);
    if (to == DataType::kINT8 && x.type() != DataType::kINT8)
        ctx.fail("a Cast to INT8 is not possible: INT8 tensors come from QuantizeLinear");
    if (x.type() == DataType::kINT8 && to != DataType::kINT8 && !isOther)
        ctx.fail("a Cast from INT8 is not possible: INT8 tensors are read by DequantizeLinear");
    if (to == DataType::kUINT8)
        return Value(asUint8(ctx, x), integers);
    if (isOther && to == DataType::kINT32)
        return wholeIntegers(ctx, x);
    return ctx.cast(isOther && x.type() != DataType::kINT32 ? wholeFloats(ctx, x) : ctx.asTensor(x), to);
}

// ONNX has no Cast to COMPLEX128. torch's TorchScript exporter writes that number for bfloat16, whose number in torch it is (Falcon
// with ALiBi).
int64_t typeOfCast(ImportContext& ctx)
{
    constexpr int64_t kComplex128 = 15, kBfloat16 = 16;
    int64_t const number = ctx.requireInt("to");
    if (number != kComplex128)
        return number;
    ctx.warn("attribute 'to' asks for COMPLEX128, which no Cast makes; BFLOAT16 is taken, for which torch's exporter "
             "writes that");
    return kBfloat16;
}

void importCast(ImportContext& ctx)
{
    int64_t const number = typeOfCast(ctx);
    DataType to;
    if (number < 0 || number > INT32_MAX || !dataTypeOf(int(number), to))
        ctx.fail("attribute 'to' asks for " + onnxTypeName(int(number)) + ", a type that the API does not have");
    Value const y = castTo(ctx, ctx.input(0), to, integersOf(int(number)));
    bool const isSame = ctx.input(0).isTensor() && y.isTensor() && &y.tensor() == &ctx.input(0).tensor();
    ctx.setOutput(0, isSame ? Value(ctx.identity(y.tensor()), y.integers()) : y);
}

void importCastLike(ImportContext& ctx)
{
    Value const& like = ctx.input(1);
    DataType const to = like.integers() == Integers::kUint8    ? DataType::kUINT8
                        : like.integers() == Integers::kOfType ? like.type()
                                                               : DataType::kINT32;
    ctx.setOutput(0, castTo(ctx, ctx.input(0), to, like.integers()));
}

} // namespace

void register_identity(ImporterMap& map)
{
    map.add("Identity", importIdentity);
    map.add("Cast", importCast);
    map.add("CastLike", importCastLike);
}

} // namespace tw::onnx
