// SPDX-License-Identifier: Apache-2.0
// Operators made of element-wise layers: Sum, Mean, Min, Max of any number of tensors, Mod, GreaterOrEqual,
// LessOrEqual.
#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using Op = nvinfer1::ElementWiseOperation;
using nvinfer1::UnaryOperation;

ITensor& chain(ImportContext& ctx, Op op)
{
    if (ctx.nbInputs() == 0)
        ctx.invalid("at least one input is needed");
    ITensor* y = &ctx.tensor(0);
    for (int i = 1; i < ctx.nbInputs(); ++i)
        y = &ctx.elementwise(*y, ctx.tensor(i), op);
    return *y;
}

void importMean(ImportContext& ctx)
{
    ITensor& sum = chain(ctx, Op::kSUM);
    int const n = ctx.nbInputs();
    ctx.setOutput(0, n == 1 ? sum : ctx.elementwise(sum, ctx.scalarLike(1.0 / n, sum), Op::kPROD));
}

// Of floating numbers, with the sign of the dividend, or (opset 28) with that of the divisor.
ITensor& floatingRest(ImportContext& ctx, ITensor& a, ITensor& b, bool ofDividend)
{
    ITensor& q = ctx.elementwise(a, b, Op::kDIV);
    ITensor& magnitude = ctx.unary(ctx.unary(q, UnaryOperation::kABS), UnaryOperation::kFLOOR);
    ITensor& whole = ctx.elementwise(magnitude, ctx.unary(q, UnaryOperation::kSIGN), Op::kPROD);
    ITensor& difference = ctx.elementwise(a, ctx.elementwise(whole, b, Op::kPROD), Op::kSUB);
    // By an infinity too the rest of a small number is the number.
    ITensor& zero = ctx.scalarLike(0, q);
    ITensor& rest = ctx.select(ctx.elementwise(whole, zero, Op::kEQUAL), a, difference);
    if (ofDividend)
        return rest;
    ITensor& signs =
        ctx.elementwise(ctx.unary(rest, UnaryOperation::kSIGN), ctx.unary(b, UnaryOperation::kSIGN), Op::kPROD);
    return ctx.select(ctx.elementwise(signs, zero, Op::kLESS), ctx.elementwise(rest, b, Op::kSUM), rest);
}

// fmod 0: the result has the sign of the divisor; fmod 1: that of the dividend.
void importMod(ImportContext& ctx)
{
    ITensor *a = &ctx.tensor(0), *b = &ctx.tensor(1);
    bool const fmod = ctx.attrInt("fmod", 0) != 0;
    if (isFloating(a->getType())) {
        if (!fmod && ctx.opset() < 28)
            ctx.invalid("fmod must be 1 for floating inputs");
        return ctx.setOutput(0, floatingRest(ctx, *a, *b, fmod));
    }
    ITensor& quotient = ctx.elementwise(*a, *b, fmod ? Op::kDIV : Op::kFLOOR_DIV); // kDIV of integers truncates
    ctx.setOutput(0, ctx.elementwise(*a, ctx.elementwise(quotient, *b, Op::kPROD), Op::kSUB));
}

ITensor& orEqual(ImportContext& ctx, Op op)
{
    ITensor &a = ctx.tensor(0), &b = ctx.tensor(1);
    return ctx.elementwise(ctx.elementwise(a, b, op), ctx.elementwise(a, b, Op::kEQUAL), Op::kOR);
}

} // namespace

void register_composites_arithmetic(ImporterMap& map)
{
    map.add("Sum", [](auto& ctx) { ctx.setOutput(0, chain(ctx, Op::kSUM)); });
    map.add("Mean", importMean);
    map.add("Min", [](auto& ctx) { ctx.setOutput(0, chain(ctx, Op::kMIN)); });
    map.add("Max", [](auto& ctx) { ctx.setOutput(0, chain(ctx, Op::kMAX)); });
    map.add("Mod", importMod);
    map.add("GreaterOrEqual", [](auto& ctx) { ctx.setOutput(0, orEqual(ctx, Op::kGREATER)); });
    map.add("LessOrEqual", [](auto& ctx) { ctx.setOutput(0, orEqual(ctx, Op::kLESS)); });
}

} // namespace tw::onnx
