// SPDX-License-Identifier: Apache-2.0
// Functions of one tensor: HardSwish, Swish, SwiGLU (of two), Celu, Mish, Gelu, Shrink, Clip, Dropout, Hardmax, IsNaN, IsInf.
#include <algorithm>
#include <cmath>
#include <limits>

#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using nvinfer1::ActivationType;
using Op = nvinfer1::ElementWiseOperation;
using nvinfer1::UnaryOperation;

void importHardSwish(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    ctx.setOutput(0, ctx.elementwise(x, ctx.activation(x, ActivationType::kHARD_SIGMOID, 1.0f / 6, 0.5f), Op::kPROD));
}

} // namespace

ITensor& swish(ImportContext& ctx, ITensor& x, float alpha)
{
    ITensor& scaled = alpha == 1 ? x : ctx.elementwise(x, ctx.scalarLike(alpha, x), Op::kPROD);
    return ctx.elementwise(x, ctx.activation(scaled, ActivationType::kSIGMOID), Op::kPROD);
}

namespace {

void importSwish(ImportContext& ctx)
{
    ctx.setOutput(0, swish(ctx, ctx.tensor(0), ctx.attrFloat("alpha", 1)));
}

void importSwiGlu(ImportContext& ctx)
{
    ctx.setOutput(0, ctx.elementwise(swish(ctx, ctx.tensor(0), ctx.attrFloat("alpha", 1)), ctx.tensor(1), Op::kPROD));
}

// max(0, x) + min(0, alpha (exp(x / alpha) - 1)) = ELU with slope: alpha (exp(x / alpha) - 1) below 0.
void importCelu(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    float const alpha = ctx.attrFloat("alpha", 1);
    if (!(alpha != 0))
        ctx.invalid("alpha must not be 0");
    ITensor& inner = ctx.elementwise(x, ctx.scalarLike(alpha, x), Op::kDIV);
    ITensor& grown = ctx.elementwise(ctx.unary(inner, UnaryOperation::kEXP), ctx.scalarLike(1, x), Op::kSUB);
    ITensor& below =
        ctx.elementwise(ctx.elementwise(grown, ctx.scalarLike(alpha, x), Op::kPROD), ctx.scalarLike(0, x), Op::kMIN);
    ctx.setOutput(0, ctx.elementwise(ctx.activation(x, ActivationType::kRELU), below, Op::kSUM));
}

void importMish(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    ITensor& soft = ctx.activation(x, ActivationType::kSOFTPLUS, 1, 1);
    ctx.setOutput(0, ctx.elementwise(x, ctx.activation(soft, ActivationType::kTANH), Op::kPROD));
}

// 0.5 x (1 + bend)
ITensor& bent(ImportContext& ctx, ITensor& x, ITensor& bend)
{
    ITensor& half = ctx.elementwise(x, ctx.scalarLike(0.5, x), Op::kPROD);
    return ctx.elementwise(half, ctx.elementwise(bend, ctx.scalarLike(1, x), Op::kSUM), Op::kPROD);
}

} // namespace

ITensor& gelu(ImportContext& ctx, ITensor& x)
{
    ITensor& scaled = ctx.elementwise(x, ctx.scalarLike(std::sqrt(0.5), x), Op::kPROD);
    return bent(ctx, x, ctx.unary(scaled, UnaryOperation::kERF));
}

// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
ITensor& tanhGelu(ImportContext& ctx, ITensor& x)
{
    ITensor& cube = ctx.elementwise(ctx.elementwise(x, x, Op::kPROD), x, Op::kPROD);
    ITensor& sum = ctx.elementwise(x, ctx.elementwise(cube, ctx.scalarLike(0.044715, x), Op::kPROD), Op::kSUM);
    ITensor& arg = ctx.elementwise(sum, ctx.scalarLike(std::sqrt(2 / M_PI), x), Op::kPROD);
    return bent(ctx, x, ctx.activation(arg, ActivationType::kTANH));
}

namespace {

void importGelu(ImportContext& ctx)
{
    bool const isTanh = ctx.attrString("approximate", "none") == "tanh";
    ctx.setOutput(0, isTanh ? tanhGelu(ctx, ctx.tensor(0)) : gelu(ctx, ctx.tensor(0)));
}

// x + bias below -lambd, x - bias above lambd, 0 between.
void importShrink(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    float const lambd = ctx.attrFloat("lambd", 0.5f), bias = ctx.attrFloat("bias", 0);
    ITensor& low = ctx.elementwise(x, ctx.scalarLike(-lambd, x), Op::kLESS);
    ITensor& high = ctx.elementwise(x, ctx.scalarLike(lambd, x), Op::kGREATER);
    ITensor& plus = ctx.elementwise(x, ctx.scalarLike(bias, x), Op::kSUM);
    ITensor& minus = ctx.elementwise(x, ctx.scalarLike(bias, x), Op::kSUB);
    ctx.setOutput(0, ctx.select(low, plus, ctx.select(high, minus, ctx.scalarLike(0, x))));
}

// Bounds are attributes up to opset 10, then optional scalar inputs. The lower bound is applied first, so that
// the upper one wins where they cross; kCLIP does it the other way round.
void importClip(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    Value bound[2];
    bool constant = isFloating(x.getType());
    for (int i = 0; i < 2; ++i) {
        char const* const attr = i == 0 ? "min" : "max";
        if (ctx.hasAttr(attr))
            bound[i] = Value(ctx.filled(ctx.attrFloat(attr, 0), x.getType(), Dims{0, {}}));
        else
            bound[i] = ctx.optionalInput(i + 1);
        if (bound[i].isConstant() && bound[i].constant().count != 1)
            ctx.invalid(fmt::format("{} must be a scalar, its shape is {}", attr, describe(bound[i].dims())));
        constant = constant && !bound[i].isTensor();
    }
    if (bound[0].isNull() && bound[1].isNull())
        return ctx.setOutput(0, ctx.identity(x));
    if (constant) {
        constexpr float kMax = std::numeric_limits<float>::max();
        auto number = [&](Value const& v, float absent) {
            ctx.decideBy(v);
            // The layer's parameters are finite; beyond the largest number there is nothing to clip.
            return v.isNull() ? absent : float(std::clamp<double>(v.constant().floatAt(0), -kMax, kMax));
        };
        float const high = number(bound[1], kMax), low = std::min(number(bound[0], -kMax), high);
        return ctx.setOutput(0, ctx.activation(x, ActivationType::kCLIP, low, high));
    }
    ITensor* y = &x;
    for (int i = 0; i < 2; ++i)
        if (!bound[i].isNull())
            y = &ctx.elementwise(*y, ctx.cast(ctx.asTensor(bound[i]), x.getType()), i == 0 ? Op::kMAX : Op::kMIN);
    ctx.setOutput(0, y);
}

void importDropout(ImportContext& ctx)
{
    if (ctx.hasInput(2) && ctx.constant(2, "training_mode").intAt(0) != 0) {
        // In training mode elements are dropped at random, unless the ratio says that none are.
        ctx.decideBy(ctx.optionalInput(1));
        ctx.check(ctx.hasInput(1) && ctx.constant(1, "ratio").floatAt(0) == 0,
                  "dropout in training mode with a ratio above 0 cannot be imported");
    }
    ITensor& x = ctx.tensor(0);
    ctx.setOutput(0, x);
    if (ctx.wantsOutput(1)) {
        // Nothing is dropped: the mask is true everywhere (FLOAT 1 up to opset 9).
        DataType const type = ctx.opset() < 10 ? x.getType() : DataType::kBOOL;
        ctx.setOutput(1, ctx.expand(ctx.scalar(1, type, x.getDimensions().nbDims), ctx.sizesOf(x)));
    }
}

// 1 at the first largest element along the axis, 0 elsewhere. Below opset 13 the axes from `axis` on count as one.
void importHardmax(ImportContext& ctx)
{
    ITensor* x = &ctx.tensor(0);
    int const rank = x->getDimensions().nbDims;
    int axis = ctx.axis(ctx.attrInt("axis", ctx.opset() < 13 ? 1 : -1), rank);
    Sizes const sizes = ctx.sizesOf(*x);
    bool const flat = ctx.opset() < 13 && axis != rank - 1;
    if (flat) {
        Sizes two{ctx.product({sizes.begin(), sizes.begin() + axis}), ctx.product({sizes.begin() + axis, sizes.end()})};
        x = &ctx.reshape(*x, two);
        axis = 1;
    }
    int const flatRank = x->getDimensions().nbDims;
    int const extent = x->getDimensions().d[axis];
    ctx.check(extent >= 0, fmt::format("the extent of axis {} must be known", axis));
    auto& top = ctx.added(ctx.network().addTopK(*x, nvinfer1::TopKOperation::kMAX, 1, 1u << axis));
    Dims line{flatRank, {1, 1, 1, 1, 1, 1, 1, 1}};
    line.d[axis] = extent;
    Constant count = ctx.newConstant(DataType::kINT32, line);
    for (int i = 0; i < extent; ++i)
        ctx.store(count, i, i);
    ITensor& index = ctx.asTensor(Value(count));
    ITensor& hit = ctx.elementwise(ctx.out(top, 1), index, Op::kEQUAL);
    ITensor& y = ctx.cast(hit, x->getType());
    ctx.setOutput(0, flat ? ctx.reshape(y, sizes) : y);
}

void importIsNaN(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    ctx.setOutput(0, ctx.unary(ctx.elementwise(x, x, Op::kEQUAL), UnaryOperation::kNOT));
}

void importIsInf(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    constexpr double kInf = std::numeric_limits<double>::infinity();
    bool const negative = ctx.attrInt("detect_negative", 1) != 0, positive = ctx.attrInt("detect_positive", 1) != 0;
    ITensor* y = nullptr;
    if (positive || !negative)
        y = &ctx.elementwise(x, ctx.scalarLike(kInf, x), Op::kEQUAL);
    if (!positive && !negative)
        y = &ctx.elementwise(*y, ctx.scalar(0, DataType::kBOOL, x.getDimensions().nbDims), Op::kAND);
    if (negative) {
        ITensor& low = ctx.elementwise(x, ctx.scalarLike(-kInf, x), Op::kEQUAL);
        y = y ? &ctx.elementwise(*y, low, Op::kOR) : &low;
    }
    ctx.setOutput(0, y);
}

} // namespace

void register_composites_functions(ImporterMap& map)
{
    map.add("HardSwish", importHardSwish);
    map.add("Swish", importSwish);
    map.add("SwiGLU", importSwiGlu);
    map.add("Celu", importCelu);
    map.add("Mish", importMish);
    map.add("Gelu", importGelu);
    map.add("Shrink", importShrink);
    map.add("Clip", importClip);
    map.add("Dropout", importDropout);
    map.add("Hardmax", importHardmax);
    map.add("IsNaN", importIsNaN);
    map.add("IsInf", importIsInf);
}

} // namespace tw::onnx
