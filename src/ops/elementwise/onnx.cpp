// SPDX-License-Identifier: Apache-2.0
// Operators of two tensors that are one element-wise layer, with numpy broadcast. Pow works in floating point: integers
// go there and back. Equality of truth values is the negated exclusive or.
#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using Op = nvinfer1::ElementWiseOperation;

void checkPair(ImportContext& ctx, ITensor& a, ITensor& b)
{
    if (a.getType() != b.getType())
        ctx.invalid("the inputs are " + std::string(typeName(a.getType())) + " and " + typeName(b.getType()) +
                    ", they must have one type");
}

// Before opset 7, `axis` with `broadcast` says at which dimension of a the dimensions of b stand.
ITensor& alignedSecond(ImportContext& ctx, ITensor& a, ITensor& b)
{
    int const rank = a.getDimensions().nbDims, own = b.getDimensions().nbDims;
    if (ctx.opset() >= 7 || ctx.attrInt("broadcast", 0) == 0 || !ctx.hasAttr("axis") || own >= rank)
        return b;
    int const first = ctx.axis(ctx.attrInt("axis", 0), rank);
    std::vector<int> behind;
    for (int i = own; i < rank - first; ++i)
        behind.push_back(i);
    return ctx.unsqueeze(b, behind);
}

template <Op operation>
void importPair(ImportContext& ctx)
{
    ITensor& a = ctx.tensor(0);
    ITensor& b = alignedSecond(ctx, a, ctx.tensor(1));
    checkPair(ctx, a, b);
    ctx.setOutput(0, ctx.elementwise(a, b, operation));
}

void importEqual(ImportContext& ctx)
{
    ITensor& a = ctx.tensor(0);
    ITensor& b = alignedSecond(ctx, a, ctx.tensor(1));
    checkPair(ctx, a, b);
    if (a.getType() == DataType::kBOOL)
        ctx.setOutput(0, ctx.unary(ctx.elementwise(a, b, Op::kXOR), nvinfer1::UnaryOperation::kNOT));
    else
        ctx.setOutput(0, ctx.elementwise(a, b, Op::kEQUAL));
}

// The result has the type of the base (opset 12 allows another type for the exponent).
void importPow(ImportContext& ctx)
{
    ITensor& a = ctx.tensor(0);
    ITensor& b = alignedSecond(ctx, a, ctx.tensor(1));
    DataType const type = a.getType();
    DataType const work = isFloating(type) ? type : DataType::kFLOAT;
    ITensor& y = ctx.elementwise(ctx.cast(a, work), ctx.cast(b, work), Op::kPOW);
    ctx.setOutput(0, ctx.cast(y, type));
}

} // namespace

void register_elementwise(ImporterMap& map)
{
    map.add("Add", importPair<Op::kSUM>);
    map.add("Sub", importPair<Op::kSUB>);
    map.add("Mul", importPair<Op::kPROD>);
    map.add("Div", importPair<Op::kDIV>);
    map.add("And", importPair<Op::kAND>);
    map.add("Or", importPair<Op::kOR>);
    map.add("Xor", importPair<Op::kXOR>);
    map.add("Greater", importPair<Op::kGREATER>);
    map.add("Less", importPair<Op::kLESS>);
    map.add("Equal", importEqual);
    map.add("Pow", importPow);
}

} // namespace tw::onnx
