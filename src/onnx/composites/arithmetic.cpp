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

// fmod 0: the result has the sign of the divisor (integers only); fmod 1: that of the dividend.
void importMod(ImportContext& ctx)
{
    ITensor *a = &ctx.tensor(0), *b = &ctx.tensor(1);
    bool const fmod = ctx.attrInt("fmod", 0) != 0;
    ITensor* quotient = nullptr;
    if (!fmod) {
        if (isFloating(a->getType()))
            ctx.invalid("fmod must be 1 for floating inputs");
        quotient = &ctx.elementwise(*a, *b, Op::kFLOOR_DIV);
    } else if (!isFloating(a->getType())) {
        quotient = &ctx.elementwise(*a, *b, Op::kDIV); // integer division truncates
    } else {
        ITensor& q = ctx.elementwise(*a, *b, Op::kDIV);
        ITensor& whole = ctx.unary(ctx.unary(q, UnaryOperation::kABS), UnaryOperation::kFLOOR);
        quotient = &ctx.elementwise(whole, ctx.unary(q, UnaryOperation::kSIGN), Op::kPROD);
    }
    ctx.setOutput(0, ctx.elementwise(*a, ctx.elementwise(*quotient, *b, Op::kPROD), Op::kSUB));
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
