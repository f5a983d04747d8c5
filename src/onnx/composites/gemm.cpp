// SPDX-License-Identifier: Apache-2.0
// Gemm: y = alpha * A' * B' + beta * C.
#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using Op = nvinfer1::ElementWiseOperation;

ITensor& scaled(ImportContext& ctx, ITensor& x, float factor)
{
    return factor == 1 ? x : ctx.elementwise(x, ctx.scalarLike(factor, x), Op::kPROD);
}

} // namespace

ITensor& gemm(ImportContext& ctx)
{
    ITensor &a = ctx.tensor(0), &b = ctx.tensor(1);
    if (a.getDimensions().nbDims != 2 || b.getDimensions().nbDims != 2)
        ctx.invalid("A and B must be matrices, their shapes are " + describe(a.getDimensions()) + " and " +
                    describe(b.getDimensions()));
    float const beta = ctx.attrFloat("beta", 1);
    ITensor* y = &ctx.matmul(a, b, ctx.attrInt("transA", 0) != 0, ctx.attrInt("transB", 0) != 0);
    y = &scaled(ctx, *y, ctx.attrFloat("alpha", 1));
    if (ctx.hasInput(2) && beta != 0) {
        if (ctx.input(2).rank() > 2)
            ctx.invalid("C of shape " + describe(ctx.input(2).dims()) + " cannot be broadcast to a matrix");
        y = &ctx.elementwise(*y, scaled(ctx, ctx.tensor(2), beta), Op::kSUM);
    }
    return *y;
}

void register_composites_gemm(ImporterMap& map)
{
    map.add("Gemm", [](ImportContext& ctx) { ctx.setOutput(0, gemm(ctx)); });
}

} // namespace tw::onnx
