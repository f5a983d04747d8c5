// SPDX-License-Identifier: Apache-2.0
// BatchNormalization, InstanceNormalization, GroupNormalization, LayerNormalization, RMSNormalization,
// MeanVarianceNormalization, LpNormalization. Norms become elementary layers, of which passes make one node again.
#include <limits>

#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using Op = nvinfer1::ElementWiseOperation;
using nvinfer1::ReduceOperation;
using nvinfer1::UnaryOperation;

// mean and sqrt(variance + epsilon) over the axes, which keep their dimension; the centred values x - mean.
struct Moments
{
    ITensor *mean, *centred, *deviation;
};
Moments momentsOf(ImportContext& ctx, ITensor& x, std::vector<int> const& axes, float epsilon)
{
    ITensor& mean = ctx.reduce(x, ReduceOperation::kAVG, axes, true);
    ITensor& centred = ctx.elementwise(x, mean, Op::kSUB);
    ITensor& variance = ctx.reduce(ctx.elementwise(centred, centred, Op::kPROD), ReduceOperation::kAVG, axes, true);
    ITensor& shifted = ctx.elementwise(variance, ctx.scalarLike(epsilon, variance), Op::kSUM);
    return {&mean, &centred, &ctx.unary(shifted, UnaryOperation::kSQRT)};
}

std::vector<int> axesFrom(int first, int rank)
{
    std::vector<int> axes;
    for (int i = first; i < rank; ++i)
        axes.push_back(i);
    return axes;
}

// A [C] value as [1, C, 1, ...] of the given rank and type.
ITensor& perChannel(ImportContext& ctx, Value const& v, int rank, DataType type)
{
    if (v.rank() != 1)
        ctx.invalid("a per-channel input has shape " + describe(v.dims()) + " instead of [C]");
    ITensor& t = ctx.cast(ctx.asTensor(v), type);
    std::vector<int> axes;
    for (int i = 0; i < rank; ++i)
        if (i != 1)
            axes.push_back(i);
    return ctx.unsqueeze(t, axes);
}

// The mathematics of training: statistics are those of the data, outputs 1 and 2 the running ones after this step; before
// opset 14 outputs 3 and 4 those of the data. Exporters write weight standardization so, over a constant.
void importBatchTraining(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    int const rank = x.getDimensions().nbDims;
    ctx.check(rank >= 2, "the input must have a channel dimension, its shape is " + describe(x.getDimensions()));
    std::vector<int> axes = axesFrom(2, rank);
    axes.insert(axes.begin(), 0);
    DataType const type = x.getType();
    ITensor& mean = ctx.reduce(x, ReduceOperation::kAVG, axes, true);
    ITensor& centred = ctx.elementwise(x, mean, Op::kSUB);
    ITensor& variance = ctx.reduce(ctx.elementwise(centred, centred, Op::kPROD), ReduceOperation::kAVG, axes, true);
    ITensor& shifted = ctx.elementwise(variance, ctx.scalarLike(ctx.attrFloat("epsilon", 1e-5f), variance), Op::kSUM);
    ITensor& normal = ctx.elementwise(centred, ctx.unary(shifted, UnaryOperation::kSQRT), Op::kDIV);
    ITensor& scaled = ctx.elementwise(normal, perChannel(ctx, ctx.input(1), rank, type), Op::kPROD);
    ctx.setOutput(0, ctx.elementwise(scaled, perChannel(ctx, ctx.input(2), rank, type), Op::kSUM));
    double const momentum = ctx.attrFloat("momentum", 0.9f);
    auto running = [&](int output, int input, ITensor& ofData) {
        if (!ctx.wantsOutput(output))
            return;
        ITensor& now = ctx.cast(ctx.squeeze(ofData, axes), ctx.tensor(input).getType());
        ITensor& before = ctx.elementwise(ctx.tensor(input), ctx.scalarLike(momentum, now), Op::kPROD);
        ctx.setOutput(
            output,
            ctx.elementwise(before, ctx.elementwise(now, ctx.scalarLike(1 - momentum, now), Op::kPROD), Op::kSUM));
    };
    running(1, 3, mean);
    running(2, 4, variance);
    for (auto const& [output, ofData] : {std::pair{3, &mean}, std::pair{4, &variance}})
        if (ctx.wantsOutput(output))
            ctx.setOutput(output, ctx.squeeze(*ofData, axes));
}

void importBatchNormalization(ImportContext& ctx)
{
    ctx.check(ctx.attrInt("spatial", 1) == 1, "only spatial statistics can be imported (spatial 1)");
    bool isTraining = ctx.attrInt("training_mode", 0) != 0;
    if (ctx.opset() < 14) // its outputs say so
        isTraining = ctx.wantsOutput(1) || ctx.wantsOutput(2) || ctx.wantsOutput(3) || ctx.wantsOutput(4);
    if (isTraining)
        return importBatchTraining(ctx);
    for (int i = 1; i < ctx.nbOutputs(); ++i)
        ctx.check(!ctx.wantsOutput(i), fmt::format("output {} exists in training only", i));
    ITensor* x = &ctx.tensor(0);
    int const rank = x->getDimensions().nbDims;
    ctx.check(rank >= 2, "the input must have a channel dimension, its shape is " + describe(x->getDimensions()));
    float const epsilon = ctx.attrFloat("epsilon", 1e-5f);
    bool constant = isFloating(x->getType()) && rank <= 5;
    for (int i = 1; i <= 4; ++i)
        constant = constant && ctx.input(i).isConstant();
    if (!constant) {
        DataType const type = x->getType();
        ITensor& variance = perChannel(ctx, ctx.input(4), rank, type);
        ITensor& deviation =
            ctx.unary(ctx.elementwise(variance, ctx.scalarLike(epsilon, variance), Op::kSUM), UnaryOperation::kSQRT);
        ITensor& centred = ctx.elementwise(*x, perChannel(ctx, ctx.input(3), rank, type), Op::kSUB);
        ITensor& scaled = ctx.elementwise(ctx.elementwise(centred, deviation, Op::kDIV),
                                          perChannel(ctx, ctx.input(1), rank, type), Op::kPROD);
        return ctx.setOutput(0, ctx.elementwise(scaled, perChannel(ctx, ctx.input(2), rank, type), Op::kSUM));
    }
    // One scale layer: y = x * s / sqrt(v + e) + (b - m * s / sqrt(v + e)), whose two factors the build computes in FP32.
    std::string const name = ctx.layerName();
    int64_t const channels = x->getDimensions().d[1];
    ITensor* of[5]{};
    for (int i = 1; i <= 4; ++i) {
        Constant const& c = ctx.input(i).constant();
        if (c.dims.nbDims != 1 || (channels >= 0 && c.count != channels) || c.count != ctx.input(1).constant().count)
            ctx.invalid("a per-channel input has shape " + describe(c.dims) + ", the data has shape " +
                        describe(x->getDimensions()));
        of[i] = &ctx.cast(ctx.asTensor(ctx.input(i)), DataType::kFLOAT);
    }
    ITensor& deviation =
        ctx.unary(ctx.elementwise(*of[4], ctx.scalarLike(epsilon, *of[4]), Op::kSUM), UnaryOperation::kSQRT);
    ITensor& scale = ctx.elementwise(*of[1], deviation, Op::kDIV);
    ITensor& shift = ctx.elementwise(*of[2], ctx.elementwise(*of[3], scale, Op::kPROD), Op::kSUB);
    // The layer takes at least two dimensions after the channel.
    std::vector<int> const extra = axesFrom(rank, 4);
    x = &ctx.unsqueeze(*x, extra);
    nvinfer1::Weights const none{x->getType(), nullptr, 0};
    auto& layer = ctx.added(ctx.network().addScaleNd(*x, nvinfer1::ScaleMode::kCHANNEL, none, none, none, 1));
    layer.setName(name.c_str());
    layer.setInput(1, ctx.cast(scale, x->getType()));
    layer.setInput(2, ctx.cast(shift, x->getType()));
    ctx.setOutput(0, ctx.squeeze(ctx.out(layer), extra));
}

void importInstanceNormalization(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    int const rank = x.getDimensions().nbDims;
    ctx.check(rank >= 3, "the input must have spatial dimensions, its shape is " + describe(x.getDimensions()));
    Moments const m = momentsOf(ctx, x, axesFrom(2, rank), ctx.attrFloat("epsilon", 1e-5f));
    ITensor& normal = ctx.elementwise(*m.centred, *m.deviation, Op::kDIV);
    ITensor& scaled = ctx.elementwise(normal, perChannel(ctx, ctx.input(1), rank, x.getType()), Op::kPROD);
    ctx.setOutput(0, ctx.elementwise(scaled, perChannel(ctx, ctx.input(2), rank, x.getType()), Op::kSUM));
}

} // namespace

ITensor& groupNormalized(ImportContext& ctx, ITensor& x, char const* groupsAttr, float epsilon, Value const& gamma,
                         Value const& beta, bool ofGroups, bool inFloat)
{
    int const rank = x.getDimensions().nbDims;
    int64_t const groups = ctx.requireInt(groupsAttr), channels = rank >= 2 ? x.getDimensions().d[1] : 0;
    ctx.check(rank >= 2 && channels > 0, "the input must have a known number of channels in its second dimension, its "
                                         "shape is " +
                                             describe(x.getDimensions()));
    if (groups < 1 || channels % groups != 0)
        ctx.invalid(fmt::format("{} is {}, the input has {} channels", groupsAttr, groups, channels));
    Sizes const sizes = ctx.sizesOf(x);
    Sizes inner{sizes[0], Size(groups), Size(channels / groups)};
    inner.insert(inner.end(), sizes.begin() + 2, sizes.end());
    ITensor& cut = ctx.cast(ctx.reshape(x, inner), inFloat ? DataType::kFLOAT : x.getType());
    Moments const m = momentsOf(ctx, cut, axesFrom(2, rank + 1), epsilon);
    ITensor* y = &ctx.cast(ctx.elementwise(*m.centred, *m.deviation, Op::kDIV), x.getType());
    auto finish = [&](int last) {
        y = &ctx.elementwise(*y, perChannel(ctx, gamma, last, x.getType()), Op::kPROD);
        y = &ctx.elementwise(*y, perChannel(ctx, beta, last, x.getType()), Op::kSUM);
    };
    if (ofGroups)
        finish(rank + 1);
    y = &ctx.reshape(*y, sizes);
    if (!ofGroups)
        finish(rank);
    return *y;
}

// The statistics are of `x` in FLOAT where `inFloat`, whatever its type is.
Normalized layerNormalized(ImportContext& ctx, ITensor& input, int first, float epsilon, bool inFloat)
{
    ITensor& x = inFloat ? ctx.cast(input, DataType::kFLOAT) : input;
    Moments const m = momentsOf(ctx, x, axesFrom(first, input.getDimensions().nbDims), epsilon);
    return {&ctx.cast(ctx.elementwise(*m.centred, *m.deviation, Op::kDIV), input.getType()), m.mean, m.deviation};
}

Normalized rmsNormalized(ImportContext& ctx, ITensor& input, int first, float epsilon, bool inFloat)
{
    ITensor& x = inFloat ? ctx.cast(input, DataType::kFLOAT) : input;
    ITensor& squares = ctx.elementwise(x, x, Op::kPROD);
    ITensor& mean = ctx.reduce(squares, ReduceOperation::kAVG, axesFrom(first, input.getDimensions().nbDims), true);
    ITensor& root = ctx.unary(ctx.elementwise(mean, ctx.scalarLike(epsilon, mean), Op::kSUM), UnaryOperation::kSQRT);
    return {&ctx.cast(ctx.elementwise(x, root, Op::kDIV), input.getType()), nullptr, &root};
}

namespace {

void importLayerNormalization(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    int const first = ctx.axis(ctx.attrInt("axis", -1), x.getDimensions().nbDims);
    Normalized const n =
        layerNormalized(ctx, x, first, ctx.attrFloat("epsilon", 1e-5f), ctx.attrInt("stash_type", 1) == 1);
    ITensor* y = &ctx.elementwise(*n.y, ctx.tensor(1), Op::kPROD);
    if (ctx.hasInput(2))
        y = &ctx.elementwise(*y, ctx.tensor(2), Op::kSUM);
    ctx.setOutput(0, y);
    if (ctx.wantsOutput(1))
        ctx.setOutput(1, n.mean);
    if (ctx.wantsOutput(2))
        ctx.setOutput(2, ctx.unary(*n.deviation, UnaryOperation::kRECIP));
}

// Scale and bias belong to groups (opset 18 to 20), to channels since.
void importGroupNormalization(ImportContext& ctx)
{
    bool const ofGroups = ctx.opset() < 21;
    ctx.setOutput(0, groupNormalized(ctx, ctx.tensor(0), "num_groups", ctx.attrFloat("epsilon", 1e-5f), ctx.input(1),
                                     ctx.input(2), ofGroups, !ofGroups && ctx.attrInt("stash_type", 1) == 1));
}

// RMSNormalization, and SimplifiedLayerNormalization as ONNX Runtime writes it.
void importRmsNormalization(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    int const first = ctx.axis(ctx.attrInt("axis", -1), x.getDimensions().nbDims);
    Normalized const n =
        rmsNormalized(ctx, x, first, ctx.attrFloat("epsilon", 1e-5f), ctx.attrInt("stash_type", 1) == 1);
    ctx.setOutput(0, ctx.elementwise(*n.y, ctx.cast(ctx.tensor(1), x.getType()), Op::kPROD));
    if (ctx.wantsOutput(1))
        ctx.setOutput(1, ctx.unary(*n.deviation, UnaryOperation::kRECIP));
}

void importMeanVarianceNormalization(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    std::vector<int> const axes = ctx.axes(ctx.attrInts("axes", {0, 2, 3}), x.getDimensions().nbDims);
    Moments const m = momentsOf(ctx, x, axes, 0);
    // The operator's own definition adds 1e-9 to the deviation, not to the variance.
    ITensor& deviation = ctx.elementwise(*m.deviation, ctx.scalarLike(1e-9, *m.deviation), Op::kSUM);
    ctx.setOutput(0, ctx.elementwise(*m.centred, deviation, Op::kDIV));
}

void importLpNormalization(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    int const axis = ctx.axis(ctx.attrInt("axis", -1), x.getDimensions().nbDims);
    int64_t const p = ctx.attrInt("p", 2);
    if (p != 1 && p != 2)
        ctx.invalid(fmt::format("p is {} (allowed: 1, 2)", p));
    ITensor* norm = nullptr;
    if (p == 1) {
        norm = &ctx.reduce(ctx.unary(x, UnaryOperation::kABS), ReduceOperation::kSUM, {axis}, true);
    } else {
        norm = &ctx.reduce(ctx.elementwise(x, x, Op::kPROD), ReduceOperation::kSUM, {axis}, true);
        norm = &ctx.unary(*norm, UnaryOperation::kSQRT);
    }
    // 0 where all is 0.
    ITensor& tiny =
        ctx.scalarLike(norm->getType() == DataType::kHALF ? 0x1p-24 : std::numeric_limits<float>::min(), *norm);
    ctx.setOutput(0, ctx.elementwise(x, ctx.elementwise(*norm, tiny, Op::kMAX), Op::kDIV));
}

} // namespace

void register_composites_normalization(ImporterMap& map)
{
    map.add("BatchNormalization", importBatchNormalization);
    map.add("InstanceNormalization", importInstanceNormalization);
    map.add("GroupNormalization", importGroupNormalization);
    map.add("LayerNormalization", importLayerNormalization);
    map.add("RMSNormalization", importRmsNormalization);
    map.add("SimplifiedLayerNormalization", importRmsNormalization);
    map.add("MeanVarianceNormalization", importMeanVarianceNormalization);
    map.add("LpNormalization", importLpNormalization);
}

} // namespace tw::onnx
