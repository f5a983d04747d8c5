// SPDX-License-Identifier: Apache-2.0
// Identity and Cast. The API converts UINT8 from and to floating types only, so integers and truth values go through
// FLOAT.
#include "onnx/importer.h"
#include "onnx/weights.h"

namespace tw::onnx {

namespace {

void importIdentity(ImportContext& ctx)
{
    Value const& x = ctx.input(0);
    ctx.setOutput(0, x.isTensor() ? Value(ctx.identity(x.tensor())) : x);
}

void importCast(ImportContext& ctx)
{
    int64_t const number = ctx.requireInt("to");
    DataType to;
    if (number < 0 || number > INT32_MAX || !dataTypeOf(int(number), to))
        ctx.fail("attribute 'to' asks for " + onnxTypeName(int(number)) + ", a type that the API does not have");
    ITensor* x = &ctx.tensor(0);
    if (to == DataType::kINT8 && x->getType() != DataType::kINT8)
        ctx.fail("a Cast to INT8 is not possible: INT8 tensors come from QuantizeLinear");
    if (x->getType() == DataType::kINT8 && to != DataType::kINT8)
        ctx.fail("a Cast from INT8 is not possible: INT8 tensors are read by DequantizeLinear");
    if (x->getType() == DataType::kUINT8 && !isFloating(to))
        x = &ctx.cast(*x, DataType::kFLOAT);
    if (to == DataType::kUINT8 && !isFloating(x->getType()) && x->getType() != DataType::kUINT8)
        x = &ctx.cast(*x, DataType::kFLOAT);
    ITensor& y = ctx.cast(*x, to);
    ctx.setOutput(0, &y == &ctx.tensor(0) ? ctx.identity(y) : y);
}

} // namespace

void register_identity(ImporterMap& map)
{
    map.add("Identity", importIdentity);
    map.add("Cast", importCast);
}

} // namespace tw::onnx
