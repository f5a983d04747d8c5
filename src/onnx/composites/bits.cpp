// SPDX-License-Identifier: Apache-2.0
// BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot, BitShift, BitCast, of which layers know nothing: whole numbers in their binary digits.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "onnx/importer.h"
#include "onnx/integers.h"
#include "onnx/weights.h"
#include "tw_onnx.pb.h"

namespace tw::onnx {

namespace {

using Op = nvinfer1::ElementWiseOperation;

struct Numbers
{
    ITensor* x;      // kINT32
    Integers kind{}; // that they have in the model; kOfType: INT32 or INT64
    int digits() const { return rangeOf(kind).bits; }
    bool isSigned() const { return rangeOf(kind).lowest < 0; }
};

Numbers numbers(ImportContext& ctx, int i)
{
    Value const& v = ctx.input(i);
    if (v.integers() != Integers::kOfType)
        return {&wholeIntegers(ctx, v), v.integers()};
    ctx.check(v.type() == DataType::kINT32 || v.type() == DataType::kINT8,
              fmt::format("input {} is {}; integers are needed", i, typeName(v.type())));
    return {&wholeIntegers(ctx, v), v.type() == DataType::kINT8 ? Integers::kInt8 : Integers::kOfType};
}

ITensor& number(ImportContext& ctx, int32_t value, ITensor& like)
{
    return ctx.scalar(value, DataType::kINT32, like.getDimensions().nbDims);
}

// x modulo `power`, a power of two: the last digits, of negative numbers in two's complement.
ITensor& lastDigits(ImportContext& ctx, ITensor& x, int32_t power)
{
    ITensor& p = number(ctx, power, x);
    ITensor& above = ctx.elementwise(ctx.elementwise(x, p, Op::kFLOOR_DIV), p, Op::kPROD);
    return ctx.elementwise(x, above, Op::kSUB);
}

// [dims of x..., digits]: 0 or 1, the lowest digit first; digit 31 is the sign.
ITensor& digitsOf(ImportContext& ctx, ITensor& x, int digits)
{
    ITensor& column = ctx.unsqueeze(x, {x.getDimensions().nbDims});
    int const below = std::min(digits, 31), rank = column.getDimensions().nbDims;
    std::vector<int64_t> powers;
    for (int i = 0; i < below; ++i)
        powers.push_back(int64_t(1) << i);
    Dims d = unitDims(rank);
    d.d[rank - 1] = below;
    ITensor& by = ctx.asTensor(Value(ctx.reshaped(ctx.intConstant(powers), d)));
    ITensor& low = lastDigits(ctx, ctx.elementwise(column, by, Op::kFLOOR_DIV), 2);
    if (digits == below)
        return low;
    ITensor& sign = ctx.cast(ctx.elementwise(column, number(ctx, 0, column), Op::kLESS), DataType::kINT32);
    return ctx.concat({&low, &sign}, rank - 1);
}

ITensor& fromDigits(ImportContext& ctx, ITensor& x, int digits)
{
    int const rank = x.getDimensions().nbDims;
    std::vector<int64_t> powers;
    for (int i = 0; i < digits; ++i)
        powers.push_back(i == 31 ? INT32_MIN : int64_t(1) << i);
    Dims d = unitDims(rank);
    d.d[rank - 1] = digits;
    ITensor& by = ctx.asTensor(Value(ctx.reshaped(ctx.intConstant(powers), d)));
    return ctx.reduce(ctx.elementwise(x, by, Op::kPROD), nvinfer1::ReduceOperation::kSUM, {rank - 1}, false);
}

// The power of two one above a mask like 1, 3, 7, 255; 0 where input i is no such constant.
int32_t powerAbove(ImportContext const& ctx, int i)
{
    if (!ctx.isConstant(i) || ctx.input(i).constant().count != 1)
        return 0;
    int64_t const mask = ctx.input(i).constant().intAt(0), power = mask + 1;
    return mask > 0 && power <= (int64_t(1) << 30) && (mask & power) == 0 ? int32_t(power) : 0;
}

enum class Bitwise
{
    kAnd,
    kOr,
    kXor,
};

template <Bitwise kind>
void importBitwise(ImportContext& ctx)
{
    Numbers const of = numbers(ctx, 0);
    ITensor *a = of.x, *b = numbers(ctx, 1).x;
    if (kind == Bitwise::kAnd) // with a mask of one element, whose rank may be the larger one
        for (int i : {0, 1})
            if (int32_t const power = powerAbove(ctx, i)) {
                ctx.broadcast(a, b);
                return ctx.setOutput(0, Value(lastDigits(ctx, i == 0 ? *b : *a, power), of.kind));
            }
    ctx.broadcast(a, b);
    ctx.check(a->getDimensions().nbDims < Dims::MAX_DIMS,
              fmt::format("numbers in {} dimensions cannot be taken apart into digits", Dims::MAX_DIMS));
    ITensor &x = digitsOf(ctx, *a, of.digits()), &y = digitsOf(ctx, *b, of.digits());
    ITensor* z = &ctx.elementwise(x, y, kind == Bitwise::kAnd ? Op::kPROD : kind == Bitwise::kOr ? Op::kMAX : Op::kSUB);
    if (kind == Bitwise::kXor)
        z = &ctx.elementwise(*z, *z, Op::kPROD);
    ctx.setOutput(0, Value(wrapped(ctx, fromDigits(ctx, *z, of.digits()), of.kind), of.kind));
}

void importNot(ImportContext& ctx)
{
    Numbers const of = numbers(ctx, 0);
    IntegerRange const range = rangeOf(of.kind);
    ctx.check(of.digits() < 32 || of.isSigned(),
              "the numbers of " + std::string(nameOf(of.kind)) + " that this gives are beyond those of INT32");
    ITensor& ones = number(ctx, of.isSigned() ? -1 : int32_t(range.largest), *of.x);
    ctx.setOutput(0, Value(ctx.elementwise(ones, *of.x, Op::kSUB), of.kind));
}

// 2^by; by: 0 to `most`, at most 30.
ITensor& powerOfTwo(ImportContext& ctx, ITensor& by, int most)
{
    std::vector<int64_t> list;
    for (int i = 0; i <= most; ++i)
        list.push_back(int64_t(1) << i);
    return ctx.gather(ctx.asTensor(Value(ctx.intConstant(list))), by, nvinfer1::GatherMode::kDEFAULT, 0);
}

// Of signed numbers (opset 28): to the right the sign comes in, to the left digits fall out. A shift by less than 0 or by all
// digits or more leaves none of the number's own.
ITensor& shiftedSigned(ImportContext& ctx, Numbers const& of, ITensor& by, bool isLeft)
{
    ITensor& x = *of.x;
    auto of2 = [&](ITensor& a, ITensor& b, Op op) -> ITensor& { return ctx.elementwise(a, b, op); };
    int const most = of.digits() - 1;
    ITensor& largest = number(ctx, most, by);
    ITensor& isBeyond = of2(of2(by, number(ctx, 0, by), Op::kLESS), of2(by, largest, Op::kGREATER), Op::kOR);
    ITensor& amount = ctx.select(isBeyond, largest, by);
    if (!isLeft) {
        ITensor &half = of2(amount, number(ctx, 2, by), Op::kFLOOR_DIV), &rest = of2(amount, half, Op::kSUB);
        ITensor& once = of2(x, powerOfTwo(ctx, half, 16), Op::kFLOOR_DIV);
        return of2(once, powerOfTwo(ctx, rest, 16), Op::kFLOOR_DIV);
    }
    ITensor& zero = number(ctx, 0, x);
    if (most < 16)
        return ctx.select(isBeyond, zero, wrapped(ctx, of2(x, powerOfTwo(ctx, amount, 15), Op::kPROD), of.kind));
    // What stays, as a signed number: no product leaves INT32. By 0 it is x.
    ITensor& one = number(ctx, 1, by);
    ITensor& some = of2(amount, one, Op::kMAX);
    ITensor& half = powerOfTwo(ctx, of2(largest, some, Op::kSUB), 30); // of the numbers that stay
    ITensor& above = of2(x, half, Op::kFLOOR_DIV);
    ITensor& low = of2(x, of2(above, half, Op::kPROD), Op::kSUB);
    ITensor& sign = of2(lastDigits(ctx, above, 2), half, Op::kPROD);
    ITensor& moved = of2(of2(low, sign, Op::kSUB), powerOfTwo(ctx, of2(some, one, Op::kSUB), 30), Op::kPROD);
    ITensor& y = of2(moved, number(ctx, 2, moved), Op::kPROD);
    return ctx.select(isBeyond, zero, ctx.select(of2(amount, number(ctx, 0, by), Op::kEQUAL), x, y));
}

// Of unsigned numbers: what leaves eight or sixteen digits is gone. Of more digits INT32 has 31, and a number beyond them
// becomes its largest one.
void importBitShift(ImportContext& ctx)
{
    std::string const direction = ctx.attrString("direction", "");
    if (direction != "LEFT" && direction != "RIGHT")
        ctx.invalid("attribute 'direction' is '" + direction + "' (allowed: LEFT, RIGHT)");
    Numbers const of = numbers(ctx, 0);
    ITensor *xs = of.x, *bys = numbers(ctx, 1).x;
    ctx.broadcast(xs, bys);
    ITensor &x = *xs, &by = *bys;
    if (of.isSigned())
        return ctx.setOutput(0, Value(shiftedSigned(ctx, {xs, of.kind}, by, direction == "LEFT"), of.kind));
    int const digits = of.digits(), most = std::min(digits, 30);
    ITensor& power = powerOfTwo(ctx, ctx.elementwise(by, number(ctx, most, by), Op::kMIN), most);
    ITensor& isBeyond = ctx.elementwise(by, number(ctx, most, by), Op::kGREATER);
    if (direction == "RIGHT") {
        ITensor& y = ctx.elementwise(x, power, Op::kFLOOR_DIV);
        return ctx.setOutput(0, digits < 32 ? y : ctx.select(isBeyond, number(ctx, 0, y), y));
    }
    if (digits < 32) {
        // The digits that stay, first: no product leaves INT32.
        ITensor& room = ctx.elementwise(number(ctx, 1 << digits, power), power, Op::kFLOOR_DIV);
        ITensor& above = ctx.elementwise(ctx.elementwise(x, room, Op::kFLOOR_DIV), room, Op::kPROD);
        ITensor& y = ctx.elementwise(ctx.elementwise(x, above, Op::kSUB), power, Op::kPROD);
        return ctx.setOutput(0, y);
    }
    ITensor& largest = number(ctx, INT32_MAX, power);
    ITensor& isLarge = ctx.elementwise(x, ctx.elementwise(largest, power, Op::kFLOOR_DIV), Op::kGREATER);
    ITensor& isAny = ctx.elementwise(x, number(ctx, 0, x), Op::kGREATER);
    ITensor& clamps = ctx.elementwise(isLarge, ctx.elementwise(isBeyond, isAny, Op::kAND), Op::kOR);
    ctx.setOutput(0, ctx.select(clamps, largest, ctx.elementwise(x, power, Op::kPROD)));
}

bool isTruth(DataType type)
{
    return type == DataType::kBOOL;
}

bool isWhole(Value const& v) // INT32 or INT64
{
    return v.type() == DataType::kINT32 && v.integers() == Integers::kOfType;
}

Constant sameBits(ImportContext& ctx, Constant const& x, DataType type)
{
    Constant y = ctx.newConstant(type, x.dims);
    if (x.count > 0)
        std::memcpy(const_cast<void*>(y.values), x.values, size_t(x.count * sizeOf(type)));
    ctx.decideBy(Value(x));
    return y;
}

// Between integers of one width, and of constants: layers know numbers, not their bits.
void importBitCast(ImportContext& ctx)
{
    int64_t const asked = ctx.requireInt("to");
    int const to = int(std::clamp<int64_t>(asked, INT32_MIN, INT32_MAX));
    Value const& x = ctx.input(0);
    DataType type;
    ctx.check(dataTypeOf(to, type),
              "attribute 'to' asks for " + onnxTypeName(to) + ", a type that the API does not have");
    using tw_onnx::TensorProto;
    Integers const wanted = to == TensorProto::INT8 ? Integers::kInt8 : integersOf(to);
    if (x.isConstant() && to == TensorProto::INT32 && isFloating(x.type()) && sizeOf(x.type()) == sizeOf(type))
        return ctx.setOutput(0, sameBits(ctx, x.constant(), type));
    if (x.isConstant() && to == TensorProto::FLOAT && isWhole(x))
        return ctx.setOutput(0, sameBits(ctx, x.constant(), type));
    bool const isFloat = isFloating(x.type()) || isFloating(type);
    ctx.check(!isFloat && to != TensorProto::INT64,
              fmt::format("bits of {} that are read as {} cannot be imported: layers know "
                          "numbers, not their bits",
                          typeName(x.type()), onnxTypeName(to)));
    if (isTruth(x.type()))
        return ctx.setOutput(0, Value(ctx.cast(ctx.asTensor(x), DataType::kINT32), wanted));
    Numbers const of = numbers(ctx, 0);
    if (isTruth(type))
        return ctx.setOutput(0, ctx.cast(*of.x, type));
    if (rangeOf(of.kind).bits != rangeOf(wanted).bits)
        ctx.invalid(fmt::format("attribute 'to' asks for {}; the input has another width, {} bits", onnxTypeName(to),
                                rangeOf(of.kind).bits));
    ctx.check(of.digits() < 32 || of.kind == wanted,
              "numbers of UINT32 and UINT64 beyond those of INT32 have no bits here");
    ctx.setOutput(0, Value(ctx.identity(wrapped(ctx, *of.x, wanted)), wanted));
}

} // namespace

void register_composites_bits(ImporterMap& map)
{
    map.add("BitwiseAnd", importBitwise<Bitwise::kAnd>);
    map.add("BitwiseOr", importBitwise<Bitwise::kOr>);
    map.add("BitwiseXor", importBitwise<Bitwise::kXor>);
    map.add("BitwiseNot", importNot);
    map.add("BitShift", importBitShift);
    map.add("BitCast", importBitCast);
}

} // namespace tw::onnx
