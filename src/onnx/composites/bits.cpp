// SPDX-License-Identifier: Apache-2.0
// BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot, BitShift, of which layers know nothing: whole numbers in their binary digits.
#include <algorithm>
#include <cstdint>

#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using Op = nvinfer1::ElementWiseOperation;

// Integers as kINT32, and how many digits they have: UINT8 is converted by way of kFLOAT, which an identity layer can.
ITensor& integers(ImportContext& ctx, int i, int& digits)
{
    ITensor& x = ctx.tensor(i);
    if (x.getType() == DataType::kUINT8) {
        digits = 8;
        return ctx.cast(ctx.cast(x, DataType::kFLOAT), DataType::kINT32);
    }
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
    Dims d{rank, {}};
    std::fill_n(d.d, rank, 1);
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
    Dims d{rank, {}};
    std::fill_n(d.d, rank, 1);
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
    ctx.setOutput(0, ctx.elementwise(number(ctx, digits == 8 ? 255 : -1, x), x, Op::kSUB));
}

// Of unsigned numbers, among which UINT8 alone is imported: what leaves the eight digits is gone.
void importBitShift(ImportContext& ctx)
{
    std::string const direction = ctx.attrString("direction", "");
    if (direction != "LEFT" && direction != "RIGHT")
        ctx.invalid("attribute 'direction' is '" + direction + "' (allowed: LEFT, RIGHT)");
    int digits = 8;
    ITensor &x = integers(ctx, 0, digits), &by = integers(ctx, 1, digits);
    ITensor& most = ctx.elementwise(by, number(ctx, 8, by), Op::kMIN);
    ITensor& powers = ctx.asTensor(Value(ctx.intConstant({1, 2, 4, 8, 16, 32, 64, 128, 256})));
    ITensor& power = ctx.out(ctx.added(ctx.network().addGather(powers, most, 0)));
    if (direction == "RIGHT")
        ctx.setOutput(0, ctx.elementwise(x, power, Op::kFLOOR_DIV));
    else
        ctx.setOutput(0, lastDigits(ctx, ctx.elementwise(x, power, Op::kPROD), 256));
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
