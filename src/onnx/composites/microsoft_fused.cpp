// SPDX-License-Identifier: Apache-2.0
// Operators of com.microsoft that ONNX Runtime's optimizers write for several others: products and convolutions with an activation, those
// of diffusion models with channels last.
#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using nvinfer1::ActivationType;
using Op = nvinfer1::ElementWiseOperation;

// parameters: alpha and beta, as far as the node gives them.
ITensor& activated(ImportContext& ctx, ITensor& y, std::string const& name, std::vector<float> parameters)
{
    struct Known
    {
        char const* name;
        ActivationType type;
        float alpha = 0, beta = 0; // where the node gives none
    };
    constexpr float kMost = std::numeric_limits<float>::max();
    constexpr Known kKnown[] = {{"Relu", ActivationType::kRELU},
                                {"Sigmoid", ActivationType::kSIGMOID},
                                {"Tanh", ActivationType::kTANH},
                                {"LeakyRelu", ActivationType::kLEAKY_RELU, 0.01f},
                                {"Elu", ActivationType::kELU, 1},
                                {"HardSigmoid", ActivationType::kHARD_SIGMOID, 0.2f, 0.5f},
                                {"Clip", ActivationType::kCLIP, -kMost, kMost}};
    if (name.empty())
        return y;
    for (Known const& k : kKnown)
        if (name == k.name)
            return ctx.activation(y, k.type, !parameters.empty() ? parameters[0] : k.alpha,
                                  parameters.size() > 1 ? parameters[1] : k.beta);
    ctx.fail(fmt::format("the activation {} cannot be imported", name));
}

// Those of products, which have a name each.
ITensor& activatedByNode(ImportContext& ctx, ITensor& y)
{
    std::string const name = ctx.attrString("activation", "");
    if (!ctx.hasAttr("activation_alpha"))
        return activated(ctx, y, name, {});
    std::vector<float> parameters{ctx.attrFloat("activation_alpha", 0)};
    if (ctx.hasAttr("activation_beta"))
        parameters.push_back(ctx.attrFloat("activation_beta", 0));
    return activated(ctx, y, name, parameters);
}

// ---- products

ITensor& scaled(ImportContext& ctx, ITensor& x, float factor)
{
    return factor == 1 ? x : ctx.elementwise(x, ctx.scalarLike(factor, x), Op::kPROD);
}

// transBatch: the first dimension goes to the place before the last; trans: the last two change places then.
ITensor& turned(ImportContext& ctx, int input, char const* trans, char const* batches)
{
    ITensor& x = ctx.tensor(input);
    int const rank = x.getDimensions().nbDims;
    if (rank < 2)
        return x;
    std::vector<int> order = allAxes(rank);
    if (ctx.attrInt(batches, 0) != 0)
        std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
    if (ctx.attrInt(trans, 0) != 0)
        std::swap(order[size_t(rank - 1)], order[size_t(rank - 2)]);
    return order == allAxes(rank) ? x : ctx.transpose(x, order);
}

ITensor& fusedProduct(ImportContext& ctx)
{
    ITensor& y = multiplied(ctx, turned(ctx, 0, "transA", "transBatchA"), turned(ctx, 1, "transB", "transBatchB"));
    return scaled(ctx, y, ctx.attrFloat("alpha", 1));
}

void importGemmFastGelu(ImportContext& ctx)
{
    ctx.setOutput(0, tanhGelu(ctx, plusInput(ctx, multiplied(ctx, ctx.tensor(0), ctx.tensor(1)), 2)));
}

// ---- convolutions

ITensor& convolvedByNode(ImportContext& ctx, ITensor& x, Value const& w)
{
    ctx.check(isStatic(w.dims()), "the kernel's dimensions must be known, they are " + describe(w.dims()));
    if (w.rank() < 3)
        ctx.invalid("the kernel has shape " + describe(w.dims()));
    return convolved(ctx, x, w, ctx.asWeights(ctx.optionalInput(2)), convolutionWindow(ctx, w.dims()));
}

void importFusedConv(ImportContext& ctx)
{
    ITensor& y = plusInput(ctx, convolvedByNode(ctx, ctx.tensor(0), ctx.asWeights(ctx.input(1))), 3);
    ctx.setOutput(0, activated(ctx, y, ctx.attrString("activation", ""), ctx.attrFloats("activation_params")));
}

std::vector<int> const kToFirst{0, 3, 1, 2}, kToLast{0, 2, 3, 1}; // channels

ITensor& channelsFirst(ImportContext& ctx, ITensor& x)
{
    if (x.getDimensions().nbDims != 4)
        ctx.invalid(
            fmt::format("a tensor with channels last has shape {}, not four dimensions", describe(x.getDimensions())));
    return ctx.transpose(x, kToFirst);
}

// Kernels have their channels last, too.
void importNhwcConv(ImportContext& ctx)
{
    ITensor& y = convolvedByNode(ctx, channelsFirst(ctx, ctx.tensor(0)), Value(channelsFirst(ctx, ctx.tensor(1))));
    ctx.setOutput(0, ctx.transpose(y, kToLast));
}

// ---- of diffusion models

// Of x, of NHWC unless channels_last says otherwise; activation 1: x sigmoid(x).
ITensor& groupNorm(ImportContext& ctx, ITensor& x)
{
    int64_t const activation = ctx.attrInt("activation", 0);
    ctx.check(activation == 0 || activation == 1, fmt::format("activation {} is neither 0 nor 1", activation));
    bool const isLast = ctx.attrInt("channels_last", 1) != 0;
    ITensor* y = &groupNormalized(ctx, isLast ? channelsFirst(ctx, x) : x, "groups", ctx.attrFloat("epsilon", 1e-5f),
                                  ctx.input(1), ctx.input(2), false, true);
    y = isLast ? &ctx.transpose(*y, kToLast) : y;
    return activation == 1 ? swish(ctx, *y, 1) : *y;
}

// Of x + skip + bias, which is output 1; skip may be [N, C].
void importSkipGroupNorm(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    ITensor* skip = &ctx.cast(ctx.tensor(3), x.getType());
    if (skip->getDimensions().nbDims == 2)
        skip = &ctx.unsqueeze(*skip, {1, 2});
    ITensor& sum = plusInput(ctx, ctx.elementwise(x, *skip, Op::kSUM), 4);
    ctx.setOutput(0, groupNorm(ctx, sum));
    if (ctx.wantsOutput(1))
        ctx.setOutput(1, sum);
}

// The first half of the columns times gelu of the second.
void importBiasSplitGelu(ImportContext& ctx)
{
    ITensor& x = plusInput(ctx, ctx.tensor(0), 1);
    Dims const d = x.getDimensions();
    int const last = d.nbDims - 1;
    if (last < 0 || d.d[last] < 2 || d.d[last] % 2 != 0)
        ctx.invalid(fmt::format("its input has shape {}; a known, even number of columns is possible", describe(d)));
    int64_t const half = d.d[last] / 2;
    ctx.setOutput(0, ctx.elementwise(columns(ctx, x, 0, half), gelu(ctx, columns(ctx, x, half, half)), Op::kPROD));
}

void importBiasSoftmax(ImportContext& ctx)
{
    ITensor& x = plusInput(ctx, ctx.tensor(0), 1);
    int const rank = x.getDimensions().nbDims, axis = ctx.axis(ctx.attrInt("axis", 1), rank);
    ctx.check(axis == rank - 1, fmt::format("a softmax over dimensions {} to {} at once cannot be imported; over the "
                                            "last one it can",
                                            axis, rank - 1));
    ctx.setOutput(0, softmax(ctx, x, axis));
}

} // namespace

void register_composites_microsoft_fused(ImporterMap& map)
{
    auto add = [&](char const* op, Importer run) { map.add(op, run, 1, ImporterMap::kNewestOpset, kMicrosoft); };
    for (char const* op : {"FusedMatMul", "TransposeMatMul"})
        add(op, [](ImportContext& ctx) { ctx.setOutput(0, fusedProduct(ctx)); });
    add("FusedMatMulActivation", [](ImportContext& ctx) { ctx.setOutput(0, activatedByNode(ctx, fusedProduct(ctx))); });
    add("FusedGemm", [](ImportContext& ctx) { ctx.setOutput(0, activatedByNode(ctx, gemm(ctx))); });
    add("GemmFastGelu", importGemmFastGelu);
    add("FusedConv", importFusedConv);
    add("NhwcConv", importNhwcConv);
    add("GroupNorm", [](ImportContext& ctx) { ctx.setOutput(0, groupNorm(ctx, ctx.tensor(0))); });
    add("SkipGroupNorm", importSkipGroupNorm);
    add("BiasAdd", [](ImportContext& ctx) { ctx.setOutput(0, plusInput(ctx, plusInput(ctx, ctx.tensor(0), 1), 2)); });
    add("BiasSplitGelu", importBiasSplitGelu);
    add("BiasSoftmax", importBiasSoftmax);
}

} // namespace tw::onnx
