// SPDX-License-Identifier: Apache-2.0
// Operators of com.microsoft that ONNX Runtime's optimizer and model builders write: norms of sums, activations; those that are refused.
#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using Op = nvinfer1::ElementWiseOperation;

ITensor& timesInput(ImportContext& ctx, ITensor& x, int input)
{
    return ctx.elementwise(x, ctx.cast(ctx.tensor(input), x.getType()), Op::kPROD);
}

// ---- norms

constexpr float kEpsilonOfSums = 1e-12f; // where the node gives none

// Of x, over the last dimension; outputs 1 and 2 are mean and reciprocal deviation.
Normalized normOf(ImportContext& ctx, ITensor& x, bool isSimplified)
{
    ctx.check(isFloating(x.getType()), fmt::format("its input is {}, not FLOAT or HALF", typeName(x.getType())));
    int const last = x.getDimensions().nbDims - 1;
    if (last < 0)
        ctx.invalid("its input has no dimension");
    float const epsilon = ctx.attrFloat("epsilon", kEpsilonOfSums);
    return isSimplified ? rmsNormalized(ctx, x, last, epsilon, true) : layerNormalized(ctx, x, last, epsilon, true);
}

// The norm of input + skip + bias, times gamma, plus beta; output 3 is the sum.
template <bool isSimplified>
void importSkipNorm(ImportContext& ctx)
{
    constexpr int kGamma = 2, kBeta = 3, kBias = isSimplified ? 3 : 4;
    ITensor& x = ctx.tensor(0);
    if (ctx.tensor(1).getDimensions().nbDims > x.getDimensions().nbDims)
        ctx.invalid(fmt::format("skip of shape {} does not fit input of shape {}",
                                describe(ctx.tensor(1).getDimensions()), describe(x.getDimensions())));
    ITensor& sum = plusInput(ctx, plusInput(ctx, x, 1), kBias);
    Normalized const n = normOf(ctx, sum, isSimplified);
    ITensor& scaled = timesInput(ctx, *n.y, kGamma);
    ctx.setOutput(0, isSimplified ? scaled : plusInput(ctx, scaled, kBeta));
    if (ctx.wantsOutput(1) && n.mean)
        ctx.setOutput(1, n.mean);
    if (ctx.wantsOutput(2))
        ctx.setOutput(2, ctx.unary(*n.deviation, nvinfer1::UnaryOperation::kRECIP));
    if (ctx.wantsOutput(3))
        ctx.setOutput(3, sum);
}

ITensor& rowsOf(ImportContext& ctx, int table, ITensor& indices)
{
    if (ctx.tensor(table).getDimensions().nbDims != 2 || indices.getType() != DataType::kINT32 ||
        indices.getDimensions().nbDims > 2)
        ctx.invalid(
            fmt::format("input {} has shape {} and is read at {} of shape {}; a table and [batch, length] integers "
                        "are possible",
                        table, describe(ctx.tensor(table).getDimensions()), typeName(indices.getType()),
                        describe(indices.getDimensions())));
    return ctx.gather(ctx.tensor(table), indices, nvinfer1::GatherMode::kDEFAULT, 0);
}

// The sum of rows of three tables, and its norm. Output 1: how many tokens of each image the mask keeps.
void importEmbedLayerNormalization(ImportContext& ctx)
{
    ITensor& ids = ctx.tensor(0);
    if (ids.getDimensions().nbDims != 2)
        ctx.invalid(fmt::format("input_ids has shape {}, not [batch, length]", describe(ids.getDimensions())));
    Sizes const size = ctx.sizesOf(ids);
    ITensor& places = ctx.hasInput(8) ? ctx.tensor(8) : ctx.unsqueeze(positions(ctx, size[1]), {0});
    ITensor* sum = &ctx.elementwise(rowsOf(ctx, 2, ids), rowsOf(ctx, 3, places), Op::kSUM);
    if (ctx.hasInput(1) && ctx.hasInput(4))
        sum = &ctx.elementwise(*sum, rowsOf(ctx, 4, ctx.tensor(1)), Op::kSUM);
    Normalized const n = normOf(ctx, *sum, false);
    ctx.setOutput(0, plusInput(ctx, timesInput(ctx, *n.y, 5), 6));
    if (ctx.wantsOutput(1)) {
        ITensor& counts = ctx.hasInput(7)
                              ? ctx.cast(ctx.elementwise(ctx.tensor(7), ctx.scalarLike(1, ctx.tensor(7)), Op::kEQUAL),
                                         DataType::kINT32)
                              : ctx.expand(ctx.scalar(0, DataType::kINT32, 2), size);
        ctx.setOutput(1, ctx.reduce(counts, nvinfer1::ReduceOperation::kSUM, {1}, false));
    }
    if (ctx.wantsOutput(2))
        ctx.setOutput(2, sum);
}

// ---- those that have no layers

template <char const* const& why>
void refuse(ImportContext& ctx)
{
    ctx.fail(why);
}

constexpr char const* kExperts = "a mixture of experts cannot be imported: its tokens go to weights that data choose";
constexpr char const* kPages = "caches in pages cannot be imported; GroupQueryAttention has one for each sequence";
constexpr char const* kBlocks = "attention that leaves out blocks cannot be imported; masks and windows can";
constexpr char const* kPacked =
    "rows without padding, as many as data say, cannot be imported; save the model without --use_mask_index or packing";
constexpr char const* kMasked =
    "attention of ONNX Runtime's own searches cannot be imported; the decoder as it was exported can, and so can "
    "MultiHeadAttention and GroupQueryAttention";
constexpr char const* kBuckets =
    "a bias by distances that only a run tells cannot be imported; the layers that exporters write for it can";
constexpr char const* kCompiled =
    "it holds what another library has compiled for its own device; import the model that it was made of";
constexpr char const* kBlocked =
    "ONNX Runtime has saved the model in the layout of one machine's CPU (ORT_ENABLE_ALL) and cannot read it elsewhere "
    "either; import the model as it was, or save it with ORT_ENABLE_EXTENDED";
constexpr char const* kSearch = "a search over a decoder cannot be imported; import the decoder, and choose the tokens "
                                "outside, or put it into a Loop "
                                "with GenerateSample or BeamStep";

} // namespace

ITensor& plusInput(ImportContext& ctx, ITensor& x, int input)
{
    return ctx.hasInput(input) ? ctx.elementwise(x, ctx.cast(ctx.tensor(input), x.getType()), Op::kSUM) : x;
}

void register_composites_microsoft(ImporterMap& map)
{
    auto add = [&](char const* op, Importer run) { map.add(op, run, 1, ImporterMap::kNewestOpset, kMicrosoft); };
    add("SkipLayerNormalization", importSkipNorm<false>);
    add("SkipSimplifiedLayerNormalization", importSkipNorm<true>);
    add("EmbedLayerNormalization", importEmbedLayerNormalization);
    add("Gelu", [](ImportContext& ctx) { ctx.setOutput(0, gelu(ctx, ctx.tensor(0))); });
    add("BiasGelu", [](ImportContext& ctx) { ctx.setOutput(0, gelu(ctx, plusInput(ctx, ctx.tensor(0), 1))); });
    add("FastGelu", [](ImportContext& ctx) { ctx.setOutput(0, tanhGelu(ctx, plusInput(ctx, ctx.tensor(0), 1))); });
    add("QuickGelu",
        [](ImportContext& ctx) { ctx.setOutput(0, swish(ctx, ctx.tensor(0), ctx.attrFloat("alpha", 1.702f))); });
    for (char const* op : {"MoE", "QMoE", "MoEPacked"})
        add(op, refuse<kExperts>);
    for (char const* op : {"PagedAttention", "SparsePagedAttention"})
        add(op, refuse<kPages>);
    for (char const* op : {"PackedAttention", "PackedMultiHeadAttention", "RemovePadding", "RestorePadding"})
        add(op, refuse<kPacked>);
    for (char const* op : {"DecoderMaskedSelfAttention", "DecoderMaskedMultiHeadAttention", "DecoderAttention"})
        add(op, refuse<kMasked>);
    for (char const* op : {"RelativePositionBias", "GatedRelativePositionBias"})
        add(op, refuse<kBuckets>);
    add("EPContext", refuse<kCompiled>);
    for (char const* op : {"Conv", "MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool", "Upsample",
                           "ReorderInput", "ReorderOutput"})
        map.add(op, refuse<kBlocked>, 1, ImporterMap::kNewestOpset, "com.microsoft.nchwc");
    for (char const* op : {"SparseAttention", "DynamicSparseAttention", "LongformerAttention"})
        add(op, refuse<kBlocks>);
    for (char const* op : {"BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch"})
        add(op, refuse<kSearch>);
}

} // namespace tw::onnx
