// SPDX-License-Identifier: Apache-2.0
// Gemm: y = alpha * A' * B' + beta * C.
#include "onnx/few_bits.h"

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
    Dims const a = ctx.input(0).dims(), b = ctx.input(1).dims();
    if (a.nbDims != 2 || b.nbDims != 2)
        ctx.invalid("A and B must be matrices, their shapes are " + describe(a) + " and " + describe(b));
    float const beta = ctx.attrFloat("beta", 1);
    bool const turnsA = ctx.attrInt("transA", 0) != 0, turnsB = ctx.attrInt("transB", 0) != 0;
    ITensor* y = nullptr;
    if (turnsA)
        ctx.withValues(1);
    else
        y = multipliedByIntegers(ctx, turnsB);
    if (!y)
        y = &ctx.matmul(ctx.tensor(0), ctx.tensor(1), turnsA, turnsB);
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
