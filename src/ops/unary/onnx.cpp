// SPDX-License-Identifier: Apache-2.0
// Operators of one tensor that are one unary layer. The unary layer takes INT32 for Sign only: Neg and Abs of integers
// are element-wise 0 - x and max(x, 0 - x).
#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using nvinfer1::ElementWiseOperation;
using nvinfer1::UnaryOperation;

template <UnaryOperation operation>
void importFloating(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    if (!isFloating(x.getType()))
        ctx.fail("the input is " + std::string(typeName(x.getType())) + "; " + ctx.opType() +
                 " takes FLOAT and HALF tensors");
    ctx.setOutput(0, ctx.unary(x, operation));
}

ITensor& negated(ImportContext& ctx, ITensor& x)
{
    if (isFloating(x.getType()))
        return ctx.unary(x, UnaryOperation::kNEG);
    return ctx.elementwise(ctx.scalarLike(0, x), x, ElementWiseOperation::kSUB);
}

void importAbs(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    if (isFloating(x.getType()))
        ctx.setOutput(0, ctx.unary(x, UnaryOperation::kABS));
    else
        ctx.setOutput(0, ctx.elementwise(x, negated(ctx, x), ElementWiseOperation::kMAX));
}
void importNot(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    if (x.getType() != DataType::kBOOL)
        ctx.invalid("the input is " + std::string(typeName(x.getType())) + ", it must be BOOL");
    ctx.setOutput(0, ctx.unary(x, UnaryOperation::kNOT));
}

} // namespace

void register_unary(ImporterMap& map)
{
    map.add("Exp", importFloating<UnaryOperation::kEXP>);
    map.add("Log", importFloating<UnaryOperation::kLOG>);
    map.add("Sqrt", importFloating<UnaryOperation::kSQRT>);
    map.add("Reciprocal", importFloating<UnaryOperation::kRECIP>);
    map.add("Sin", importFloating<UnaryOperation::kSIN>);
    map.add("Cos", importFloating<UnaryOperation::kCOS>);
    map.add("Tan", importFloating<UnaryOperation::kTAN>);
    map.add("Sinh", importFloating<UnaryOperation::kSINH>);
    map.add("Cosh", importFloating<UnaryOperation::kCOSH>);
    map.add("Asin", importFloating<UnaryOperation::kASIN>);
    map.add("Acos", importFloating<UnaryOperation::kACOS>);
    map.add("Atan", importFloating<UnaryOperation::kATAN>);
    map.add("Asinh", importFloating<UnaryOperation::kASINH>);
    map.add("Acosh", importFloating<UnaryOperation::kACOSH>);
    map.add("Atanh", importFloating<UnaryOperation::kATANH>);
    map.add("Ceil", importFloating<UnaryOperation::kCEIL>);
    map.add("Floor", importFloating<UnaryOperation::kFLOOR>);
    map.add("Round", importFloating<UnaryOperation::kROUND>);
    map.add("Erf", importFloating<UnaryOperation::kERF>);
    map.add("Neg", [](auto& ctx) { ctx.setOutput(0, negated(ctx, ctx.tensor(0))); });
    map.add("Abs", importAbs);
    map.add("Sign", [](auto& ctx) { ctx.setOutput(0, ctx.unary(ctx.tensor(0), UnaryOperation::kSIGN)); });
    map.add("Not", importNot);
}

} // namespace tw::onnx
