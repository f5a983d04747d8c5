// SPDX-License-Identifier: Apache-2.0
// MatMul with numpy's rules: a 1-D operand is a vector, leading dimensions are broadcast.
#include <algorithm>

#include "onnx/few_bits.h"

namespace tw::onnx {

namespace {

using nvinfer1::MatrixOperation;

void importMatMul(ImportContext& ctx)
{
    ITensor* const y = multipliedByIntegers(ctx, false);
    ctx.setOutput(0, y ? *y : multiplied(ctx, ctx.tensor(0), ctx.tensor(1)));
}

} // namespace

ITensor& multiplied(ImportContext& ctx, ITensor& first, ITensor& second)
{
    ITensor *a = &first, *b = &second;
    auto isVector = [](ITensor& t) { return t.getDimensions().nbDims == 1; };
    bool const vectorA = isVector(*a), vectorB = isVector(*b);
    int const batchA = a->getDimensions().nbDims - (vectorA ? 1 : 2),
              batchB = b->getDimensions().nbDims - (vectorB ? 1 : 2);
    if (batchA < 0 || batchB < 0)
        ctx.invalid("scalars cannot be multiplied as matrices");
    int const batch = std::max(batchA, batchB);
    a = &ctx.unsqueeze(*a, allAxes(batch - batchA));
    b = &ctx.unsqueeze(*b, allAxes(batch - batchB));
    auto operation = [](bool vector) { return vector ? MatrixOperation::kVECTOR : MatrixOperation::kNONE; };
    auto& layer = ctx.added(ctx.network().addMatrixMultiply(*a, operation(vectorA), *b, operation(vectorB)));
    return ctx.out(layer);
}

void register_matrix_multiply(ImporterMap& map)
{
    map.add("MatMul", importMatMul);
}

} // namespace tw::onnx
