// SPDX-License-Identifier: Apache-2.0
#include "api/network/setter.h"
#include "ops/matrix_multiply/op.h"

using namespace tw;
using namespace tw::api;

namespace {

struct MatrixMultiplyLayer final : LayerObject<nvinfer1::IMatrixMultiplyLayer>
{
    nvinfer1::MatrixOperation operations[2]{nvinfer1::MatrixOperation::kNONE, nvinfer1::MatrixOperation::kNONE};

    Result<void> lower(LowerContext& ctx) override
    {
        ops::matrix_multiply::Attrs a;
        a.a = static_cast<ops::matrix_multiply::MatrixOperation>(operations[0]);
        a.b = static_cast<ops::matrix_multiply::MatrixOperation>(operations[1]);
        return ctx.lowerTo(ops::matrix_multiply::def(), std::move(a), {ctx.in(0), ctx.in(1)});
    }
};

std::string checkOperation(nvinfer1::MatrixOperation op)
{
    return checkEnum(op, "matrix operation");
}

TW_OBJECT(nvinfer1::IMatrixMultiplyLayer, MatrixMultiplyLayer)

} // namespace

namespace nvinfer1 {

IMatrixMultiplyLayer* INetworkDefinition::addMatrixMultiply(ITensor& input0, MatrixOperation op0, ITensor& input1,
                                                            MatrixOperation op1) noexcept
{
    return addLayer<MatrixMultiplyLayer>(
        *this, LayerType::kMATRIX_MULTIPLY, "Matrix Multiply", {&input0, &input1}, [&](MatrixMultiplyLayer& l) {
            l.operations[0] = op0;
            l.operations[1] = op1;
            return checkAll("addMatrixMultiply", {checkOperation(op0), checkOperation(op1)});
        });
}

void IMatrixMultiplyLayer::setOperation(int32_t index, MatrixOperation op) noexcept
{
    MatrixMultiplyLayer& l = objectOf(*this);
    setField(l, l.operations[index == 1], op, [&]() -> Result<void> {
        if (index != 0 && index != 1)
            return l.error("setOperation: input " + std::to_string(index) + " must be 0 or 1");
        return refusal(l, checkOperation(op));
    });
}
MatrixOperation IMatrixMultiplyLayer::getOperation(int32_t index) const noexcept
{
    return index == 0 || index == 1 ? objectOf(*this).operations[index] : MatrixOperation::kNONE;
}

} // namespace nvinfer1
