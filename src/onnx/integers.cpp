// SPDX-License-Identifier: Apache-2.0
#include "onnx/integers.h"

#include <algorithm>
#include <set>

namespace tw::onnx {

namespace {

using Op = nvinfer1::ElementWiseOperation;
using Names = std::set<std::string, std::less<>>;

// INT8 numbers as FLOAT.
ITensor& dequantized(ImportContext& ctx, ITensor& x)
{
    return ctx.out(ctx.added(ctx.network().addDequantize(x, ctx.scalar(1, DataType::kFLOAT, 0))));
}

} // namespace

IntegerRange rangeOf(Integers integers)
{
    switch (integers) {
    case Integers::kInt2:
        return {2, -2, 1};
    case Integers::kUint2:
        return {2, 0, 3};
    case Integers::kInt4:
        return {4, -8, 7};
    case Integers::kUint4:
        return {4, 0, 15};
    case Integers::kInt8:
        return {8, -128, 127};
    case Integers::kUint8:
        return {8, 0, 255};
    case Integers::kInt16:
        return {16, -32768, 32767};
    case Integers::kUint16:
        return {16, 0, 65535};
    case Integers::kUint32:
    case Integers::kUint64:
        return {32, 0, 2147483647.0};
    default:
        return {};
    }
}

char const* nameOf(Integers integers)
{
    constexpr char const* kNames[] = {"INT32", "INT2",  "UINT2",  "INT4",   "UINT4", "INT8",
                                      "UINT8", "INT16", "UINT16", "UINT32", "UINT64"};
    return kNames[size_t(integers)];
}

ITensor& wholeFloats(ImportContext& ctx, Value const& v)
{
    if (v.isConstant())
        return ctx.asTensor(Value(ctx.converted(v.constant(), DataType::kFLOAT)));
    ITensor& x = ctx.asTensor(v);
    if (x.getType() != DataType::kINT8)
        return ctx.cast(x, DataType::kFLOAT);
    ITensor& numbers = dequantized(ctx, x);
    return v.integers() == Integers::kUint8 ? ctx.elementwise(numbers, ctx.scalarLike(128, numbers), Op::kSUM)
                                            : numbers;
}

ITensor& wholeIntegers(ImportContext& ctx, Value const& v)
{
    if (v.type() == DataType::kINT32)
        return ctx.asTensor(v);
    return ctx.cast(wholeFloats(ctx, v), DataType::kINT32);
}

ITensor& plainTensor(ImportContext& ctx, Value const& v)
{
    bool const isOther = v.isOneTensor() && v.integers() != Integers::kOfType;
    return isOther ? wholeIntegers(ctx, v) : ctx.asTensor(v);
}

ITensor& wrapped(ImportContext& ctx, ITensor& x, Integers integers)
{
    IntegerRange const r = rangeOf(integers);
    if (r.bits >= 32 || integers == Integers::kOfType)
        return x;
    // ((x - lowest) modulo 2^bits) + lowest
    ITensor& lowest = ctx.scalarLike(r.lowest, x);
    ITensor& power = ctx.scalarLike(double(1 << r.bits), x);
    ITensor& up = r.lowest == 0 ? x : ctx.elementwise(x, lowest, Op::kSUB);
    ITensor& above = ctx.elementwise(ctx.elementwise(up, power, Op::kFLOOR_DIV), power, Op::kPROD);
    ITensor& low = ctx.elementwise(up, above, Op::kSUB);
    return r.lowest == 0 ? low : ctx.elementwise(low, lowest, Op::kSUM);
}

ITensor& asUint8(ImportContext& ctx, Value const& v)
{
    if (v.type() == DataType::kUINT8)
        return ctx.asTensor(v);
    return ctx.cast(wholeFloats(ctx, v), DataType::kUINT8); // the API converts floating numbers alone
}

ITensor& asInt8(ImportContext& ctx, Value const& v)
{
    if (v.type() == DataType::kINT8)
        return ctx.asTensor(v);
    ITensor* x = &wholeFloats(ctx, v);
    if (v.integers() == Integers::kUint8)
        x = &ctx.elementwise(*x, ctx.scalarLike(128, *x), Op::kSUB);
    return ctx.out(ctx.added(ctx.network().addQuantize(*x, ctx.scalar(1, DataType::kFLOAT, 0))));
}

IntegerForm formTaken(std::string const& opType)
{
    static Names const kAny{"Cast",
                            "CastLike",
                            "Identity",
                            "Shape",
                            "Size",
                            "If",
                            "QuantizeLinear",
                            "DequantizeLinear",
                            "Loop",
                            "SequenceConstruct",
                            "SequenceInsert",
                            "SequenceMap",
                            "SplitToSequence",
                            "Optional",
                            "OptionalGetElement",
                            "OptionalHasElement",
                            "MatMulIntegerToFloat",
                            "DynamicQuantizeMatMul",
                            "QAttention"};
    static Names const kMoved{"Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze",    "Slice",       "Split",
                              "Concat",  "Gather",    "Expand",  "Tile",    "DepthToSpace", "SpaceToDepth"};
    static Names const kFloats{"Resize", "Upsample", "GlobalMaxPool", "MatMul", "Gemm"};
    return kAny.contains(opType) || contains(kQuantizedOps, opType) ? IntegerForm::kAny
           : kMoved.contains(opType)                                ? IntegerForm::kMoved
           : opType == "MaxPool"                                    ? IntegerForm::kMovedFloat
           : kFloats.contains(opType)                               ? IntegerForm::kFloat
                                                                    : IntegerForm::kInt32;
}

Integers resultIntegers(ImportContext const& ctx, int output)
{
    // Types of their own; those of Cast and the like are said by their importers.
    static Names const kOthers{"Shape",
                               "Size",
                               "ArgMax",
                               "ArgMin",
                               "NonZero",
                               "Cast",
                               "CastLike",
                               "BitCast",
                               "EyeLike",
                               "ConstantOfShape",
                               "If",
                               "Loop",
                               "Scan",
                               "QuantizeLinear",
                               "DequantizeLinear",
                               "RandomUniformLike",
                               "RandomNormalLike",
                               "NonMaxSuppression",
                               "MatMulIntegerToFloat",
                               "DynamicQuantizeMatMul",
                               "QAttention"};
    static Names const kFirstAlone{"TopK", "MaxPool", "Unique", "Dropout"};
    std::string const& op = ctx.opType();
    if (kOthers.contains(op) || contains(kQuantizedOps, op) || (output > 0 && kFirstAlone.contains(op)))
        return Integers::kOfType;
    int const source = op == "Where" ? 1 : op == "OneHot" ? 2 : 0;
    return ctx.hasInput(source) ? ctx.input(source).integers() : Integers::kOfType;
}

bool leavesRange(std::string const& opType)
{
    static Names const kThese{"Add",     "Sub",    "Mul",     "Neg",       "Abs",        "Sum",
                              "Pow",     "CumSum", "CumProd", "ReduceSum", "ReduceProd", "ReduceSumSquare",
                              "ReduceL1"};
    return kThese.contains(opType);
}

} // namespace tw::onnx
