// SPDX-License-Identifier: Apache-2.0
#include "api/network.h"
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
        TW_ASSIGN(ir::Node * node, ctx.add(ops::matrix_multiply::def(), std::move(a), {ctx.in(0), ctx.in(1)}));
        ctx.output(0, node->outputs[0]);
        return {};
    }
};

Result<void> checkOperation(nvinfer1::MatrixOperation op)
{
    int const number = static_cast<int>(op);
    if (number < 0 || number >= nvinfer1::EnumMax<nvinfer1::MatrixOperation>())
        return invalidArgument("matrix operation " + std::to_string(number) + " does not exist");
    return {};
}

} // namespace

namespace nvinfer1 {

IMatrixMultiplyLayer* INetworkDefinition::addMatrixMultiply(ITensor& input0, MatrixOperation op0, ITensor& input1,
                                                            MatrixOperation op1) noexcept
{
    return addLayer<MatrixMultiplyLayer>(*this, LayerType::kMATRIX_MULTIPLY, "Matrix Multiply", {&input0, &input1},
                                         [&](MatrixMultiplyLayer& l) -> Result<void> {
                                             TW_TRY(checkOperation(op0));
                                             TW_TRY(checkOperation(op1));
                                             l.operations[0] = op0;
                                             l.operations[1] = op1;
                                             return {};
                                         });
}

void IMatrixMultiplyLayer::setOperation(int32_t index, MatrixOperation op) noexcept
{
    auto& l = static_cast<MatrixMultiplyLayer&>(*this);
    guardedVoid(l.reporter(), [&]() -> Result<void> {
        if (index != 0 && index != 1)
            return l.error("setOperation: input " + std::to_string(index) + " must be 0 or 1");
        TW_TRY(checkOperation(op));
        l.operations[index] = op;
        l.changed();
        return {};
    });
}
MatrixOperation IMatrixMultiplyLayer::getOperation(int32_t index) const noexcept
{
    auto const& l = static_cast<MatrixMultiplyLayer const&>(*this);
    return index == 0 || index == 1 ? l.operations[index] : MatrixOperation::kNONE;
}

} // namespace nvinfer1
