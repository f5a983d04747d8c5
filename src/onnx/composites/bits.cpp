// SPDX-License-Identifier: Apache-2.0
// BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot, BitShift, of which layers know nothing: whole numbers in their binary digits.
#include <algorithm>
#include <cstdint>

#include "onnx/importer.h"
#include "onnx/integers.h"

namespace tw::onnx {

namespace {

using Op = nvinfer1::ElementWiseOperation;

// Integers as kINT32, and how many digits they have.
ITensor& integers(ImportContext& ctx, int i, int& digits)
{
    Value const& v = ctx.input(i);
    if (v.integers() != Integers::kOfType) {
        digits = rangeOf(v.integers()).bits;
        return wholeIntegers(ctx, v);
    }
    ITensor& x = ctx.tensor(i);
    ctx.check(x.getType() == DataType::kINT32 || x.getType() == DataType::kINT8,
              fmt::format("input {} is {}; integers are needed", i, typeName(x.getType())));
    return ctx.cast(x, DataType::kINT32);
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
    int digits = 32;
    ITensor *a = &integers(ctx, 0, digits), *b = &integers(ctx, 1, digits);
    if (kind == Bitwise::kAnd) // with a mask of one element, whose rank may be the larger one
        for (int i : {0, 1})
            if (int32_t const power = powerAbove(ctx, i)) {
                ctx.broadcast(a, b);
                return ctx.setOutput(0, lastDigits(ctx, i == 0 ? *b : *a, power));
            }
    ctx.broadcast(a, b);
    ctx.check(a->getDimensions().nbDims < Dims::MAX_DIMS,
              fmt::format("numbers in {} dimensions cannot be taken apart into digits", Dims::MAX_DIMS));
    ITensor &x = digitsOf(ctx, *a, digits), &y = digitsOf(ctx, *b, digits);
    ITensor* z = &ctx.elementwise(x, y, kind == Bitwise::kAnd ? Op::kPROD : kind == Bitwise::kOr ? Op::kMAX : Op::kSUB);
    if (kind == Bitwise::kXor)
        z = &ctx.elementwise(*z, *z, Op::kPROD);
    ctx.setOutput(0, fromDigits(ctx, *z, digits));
}

void importNot(ImportContext& ctx)
{
    int digits = 32;
    ITensor& x = integers(ctx, 0, digits);
    IntegerRange const range = rangeOf(ctx.input(0).integers());
    ctx.check(digits < 32 || range.lowest < 0, "the numbers of " + std::string(nameOf(ctx.input(0).integers())) +
                                                   " that this gives are beyond those of INT32");
    ctx.setOutput(0, ctx.elementwise(number(ctx, range.lowest < 0 ? -1 : int32_t(range.largest), x), x, Op::kSUB));
}

// Of unsigned numbers: what leaves eight or sixteen digits is gone. Of more digits INT32 has 31, and a number beyond them
// becomes its largest one.
void importBitShift(ImportContext& ctx)
{
    std::string const direction = ctx.attrString("direction", "");
    if (direction != "LEFT" && direction != "RIGHT")
        ctx.invalid("attribute 'direction' is '" + direction + "' (allowed: LEFT, RIGHT)");
    int digits = 32, digitsOfBy = 32;
    ITensor &x = integers(ctx, 0, digits), &by = integers(ctx, 1, digitsOfBy);
    int const most = std::min(digits, 30);
    std::vector<int64_t> list;
    for (int i = 0; i <= most; ++i)
        list.push_back(int64_t(1) << i);
    ITensor& powers = ctx.asTensor(Value(ctx.intConstant(list)));
    ITensor& power =
        ctx.gather(powers, ctx.elementwise(by, number(ctx, most, by), Op::kMIN), nvinfer1::GatherMode::kDEFAULT, 0);
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

} // namespace

void register_composites_bits(ImporterMap& map)
{
    map.add("BitwiseAnd", importBitwise<Bitwise::kAnd>);
    map.add("BitwiseOr", importBitwise<Bitwise::kOr>);
    map.add("BitwiseXor", importBitwise<Bitwise::kXor>);
    map.add("BitwiseNot", importNot);
    map.add("BitShift", importBitShift);
}

} // namespace tw::onnx
