// SPDX-License-Identifier: Apache-2.0
// Range, ConstantOfShape, RandomUniform, RandomNormal and their Like forms. A seed cannot be given to the API: random
// numbers follow the state of the execution context.
#include "onnx/importer.h"
#include "onnx/weights.h"

namespace tw::onnx {

namespace {

using nvinfer1::FillOperation;
using Op = nvinfer1::ElementWiseOperation;
using nvinfer1::UnaryOperation;

// A fill layer of these sizes.
nvinfer1::IFillLayer& addFill(ImportContext& ctx, Sizes const& sizes, FillOperation operation)
{
    ctx.check(sizes.size() <= size_t(Dims::MAX_DIMS),
              fmt::format("an output of rank {} is above the highest rank of the API, 8", sizes.size()));
    Dims dims{int32_t(sizes.size()), {}};
    for (size_t i = 0; i < sizes.size(); ++i) {
        if (sizes[i].known() && (sizes[i].value < 0 || sizes[i].value > INT32_MAX))
            ctx.invalid(fmt::format("dimension {} of the output would be {}", i, sizes[i].value));
        dims.d[i] = sizes[i].known() ? int32_t(sizes[i].value) : 0;
    }
    auto& fill = ctx.added(ctx.network().addFill(dims, operation));
    if (!ImportContext::allKnown(sizes))
        fill.setInput(0, ctx.asTensor(sizes));
    return fill;
}

ITensor& asScalar(ImportContext& ctx, ITensor& t)
{
    return t.getDimensions().nbDims == 0 ? t : ctx.reshape(t, Dims{0, {}});
}

// ceil((limit - start) / delta), at least 0. Integers: ceil(a / b) = -floor(-a / b).
void importRange(ImportContext& ctx)
{
    for (int i = 0; i < 3; ++i) {
        Dims const d = ctx.input(i).dims();
        if (d.nbDims > 1 || (d.nbDims == 1 && d.d[0] > 1) || volume(d) == 0)
            ctx.invalid(fmt::format("input {} has shape {}, it must be a scalar", i, describe(d)));
        if (ctx.input(i).type() != ctx.input(0).type())
            ctx.invalid("start, limit and delta must have one type");
    }
    ITensor &start = asScalar(ctx, ctx.tensor(0)), &limit = asScalar(ctx, ctx.tensor(1)),
            &delta = asScalar(ctx, ctx.tensor(2));
    Sizes count;
    if (start.getType() == DataType::kINT32) {
        Size const from = ctx.sizesFrom(ctx.input(0))[0], to = ctx.sizesFrom(ctx.input(1))[0],
                   step = ctx.sizesFrom(ctx.input(2))[0];
        if (step.known() && step.value == 0)
            ctx.invalid("delta is 0");
        count = {ctx.max(ctx.sub(0, ctx.floorDiv(ctx.sub(from, to), step)), 0)};
    } else {
        ITensor& quotient = ctx.elementwise(ctx.elementwise(limit, start, Op::kSUB), delta, Op::kDIV);
        ITensor& whole = ctx.cast(ctx.unary(quotient, UnaryOperation::kCEIL), DataType::kINT32);
        ITensor& n = ctx.elementwise(whole, ctx.scalar(0, DataType::kINT32, 0), Op::kMAX);
        count = {Size(ctx.reshape(n, Dims{1, {1}}))};
    }
    auto& fill = addFill(ctx, count, FillOperation::kLINSPACE);
    fill.setInput(1, start);
    fill.setInput(2, ctx.reshape(delta, Dims{1, {1}}));
    ctx.setOutput(0, ctx.out(fill));
}

void importConstantOfShape(ImportContext& ctx)
{
    Sizes const sizes = ctx.sizesFrom(ctx.input(0));
    double value = 0;
    DataType type = DataType::kFLOAT;
    if (ctx.hasAttr("value")) {
        Constant const v = ctx.attrTensor("value");
        if (v.count != 1)
            ctx.invalid(fmt::format("attribute 'value' has {} elements, it must have 1", v.count));
        value = v.floatAt(0);
        type = v.type;
    }
    ctx.check(sizes.size() <= size_t(Dims::MAX_DIMS),
              fmt::format("an output of rank {} is above the highest rank of the API, 8", sizes.size()));
    ctx.setOutput(0, ctx.expand(ctx.scalar(value, type, int(sizes.size())), sizes));
}

void random(ImportContext& ctx, Sizes const& sizes, FillOperation operation, DataType absentType)
{
    DataType type = absentType;
    int64_t const number = ctx.attrInt("dtype", 0);
    if (ctx.hasAttr("dtype") && (number < 0 || number > INT32_MAX || !dataTypeOf(int(number), type)))
        type = DataType::kINT32; // refused below
    if (!isFloating(type))
        ctx.invalid("dtype must be a floating type");
    if (ctx.hasAttr("seed"))
        ctx.warn("the seed is ignored: random numbers follow the state of the execution context");
    bool const uniform = operation == FillOperation::kRANDOM_UNIFORM;
    auto& fill = addFill(ctx, sizes, operation);
    fill.setAlpha(uniform ? ctx.attrFloat("low", 0) : ctx.attrFloat("mean", 0));
    fill.setBeta(uniform ? ctx.attrFloat("high", 1) : ctx.attrFloat("scale", 1));
    ctx.setOutput(0, ctx.cast(ctx.out(fill), type));
}

template <FillOperation operation>
void importRandom(ImportContext& ctx)
{
    Sizes sizes;
    for (int64_t d : ctx.requireInts("shape"))
        sizes.emplace_back(d);
    random(ctx, sizes, operation, DataType::kFLOAT);
}

template <FillOperation operation>
void importRandomLike(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    random(ctx, ctx.sizesOf(x), operation, x.getType());
}

} // namespace

void register_fill(ImporterMap& map)
{
    map.add("Range", importRange);
    map.add("ConstantOfShape", importConstantOfShape);
    map.add("RandomUniform", importRandom<FillOperation::kRANDOM_UNIFORM>);
    map.add("RandomNormal", importRandom<FillOperation::kRANDOM_NORMAL>);
    map.add("RandomUniformLike", importRandomLike<FillOperation::kRANDOM_UNIFORM>);
    map.add("RandomNormalLike", importRandomLike<FillOperation::kRANDOM_NORMAL>);
}

} // namespace tw::onnx
