// SPDX-License-Identifier: Apache-2.0
// MultiHeadAttention and Attention of com.microsoft.
#include <cmath>

#include "onnx/attention.h"
#include "onnx/quantized.h"

namespace tw::onnx {

namespace {

using Op = nvinfer1::ElementWiseOperation;

int64_t headsOf(ImportContext& ctx)
{
    int64_t const heads = ctx.requireInt("num_heads");
    if (heads < 1 || heads > INT32_MAX)
        ctx.invalid(fmt::format("num_heads is {}", heads));
    return heads;
}

// x [.., n, ..] at index i of the axis, without it.
ITensor& oneOf(ImportContext& ctx, ITensor& x, int axis, int64_t i)
{
    Constant const index = ctx.intScalar(i);
    return ctx.gather(x, ctx.asTensor(Value(index)), nvinfer1::GatherMode::kDEFAULT, axis);
}

// What a mask of integers adds to the scores [B, heads, queries, keys]: `filter` where it says 0, or where it gives no
// places but numbers of keys: an end for each image, and behind these a begin.
ITensor& addedBy(ImportContext& ctx, ITensor& given, DataType type, Size const& batch, Size const& queries,
                 Size const& keys)
{
    double const filter = ctx.attrFloat("mask_filter_value", -10000);
    Dims const d = given.getDimensions();
    bool const isBool = given.getType() == DataType::kBOOL;
    if ((given.getType() != DataType::kINT32 && !isBool) || d.nbDims < 1 || d.nbDims > 4)
        ctx.invalid(fmt::format("the mask is {} of shape {}, not integers of 1 to 4 dimensions",
                                typeName(given.getType()), describe(d)));
    ITensor* keep = nullptr;
    if (d.nbDims == 1) {
        ITensor& j = ctx.unsqueeze(positions(ctx, keys), {0});
        auto numbers = [&](Size const& from) -> ITensor& {
            return ctx.unsqueeze(ctx.slice(given, {from}, {batch}, {Size(1)}), {1}); // [B, 1]
        };
        keep = &ctx.elementwise(j, numbers(Size(0)), Op::kLESS);
        if (batch.known() && d.d[0] == 2 * batch.value)
            keep = &andAlso(ctx, keep,
                            ctx.unary(ctx.elementwise(j, numbers(batch), Op::kLESS), nvinfer1::UnaryOperation::kNOT));
        keep = &ctx.unsqueeze(*keep, {1, 2});
    } else {
        keep = isBool ? &given : &ctx.elementwise(given, ctx.scalarLike(0, given), Op::kGREATER);
        if (d.nbDims == 4) { // [B, 1, longest, longest]: the last queries in front of the end of the keys
            Sizes const size{batch, Size(1), queries, keys};
            Sizes const from{Size(0), Size(0), ctx.sub(keys, queries), Size(0)};
            keep = &ctx.slice(*keep, from, size, Sizes(4, Size(1)));
        } else {
            keep = &asLongAsKeys(ctx, *keep, keys, 0);
            keep = d.nbDims == 2 ? &ctx.unsqueeze(*keep, {1, 2}) : &ctx.unsqueeze(*keep, {1});
        }
    }
    return ctx.select(*keep, ctx.scalar(0, type, 4), ctx.scalar(filter, type, 4));
}

// q, k and v as [B, heads, S, size]; bias and mask: those inputs; past: so many keys stand in front of those of this call.
ITensor& result(ImportContext& ctx, ITensor& q, ITensor& k, ITensor& v, int mask, int bias, Size const& past)
{
    Sizes const size = ctx.sizesOf(q);
    Size const queries = size[2], keys = ctx.sizesOf(k)[2];
    DataType const type = q.getType();
    AttentionRule rule;
    float const scale = ctx.attrFloat("scale", 0);
    ctx.check(size[3].known(), "the size of a head (the last dimension of queries) is not known");
    rule.scale = scale != 0 ? double(scale) : 1 / std::sqrt(double(size[3].value));
    rule.softmaxType = type;
    if (ctx.hasInput(mask))
        rule.added = &addedBy(ctx, ctx.tensor(mask), type, size[0], queries, keys);
    if (ctx.hasInput(bias)) {
        ITensor& given = ctx.cast(ctx.tensor(bias), type);
        if (given.getDimensions().nbDims != 4)
            ctx.invalid(fmt::format("attention_bias has shape {}; four dimensions are possible",
                                    describe(given.getDimensions())));
        rule.added = &plus(ctx, rule.added, asLongAsKeys(ctx, given, keys, 0));
    }
    if (ctx.attrInt("unidirectional", 0) != 0 && !(queries.known() && queries.value == 1)) {
        ITensor* i = &ctx.unsqueeze(positions(ctx, queries), {1});
        if (!past.known() || past.value != 0)
            i = &ctx.elementwise(*i, ctx.reshape(ctx.asScalar(past), unitDims(2)), Op::kSUM);
        ITensor& until = ctx.elementwise(*i, ctx.scalar(1, DataType::kINT32, 2), Op::kSUM);
        rule.keep = &ctx.elementwise(positions(ctx, keys), until, Op::kLESS);
    }
    return attended(ctx, q, k, v, rule, [&](ScoreStage stage, ITensor& scores) {
        if (stage == ScoreStage::kMasked && ctx.opType() == "MultiHeadAttention" && ctx.wantsOutput(3))
            ctx.setOutput(3, scores);
    });
}

// ---- MultiHeadAttention

// A tensor [B, S, heads * size], with its part of the bias.
ITensor& biased(ImportContext& ctx, ITensor& x, int64_t begin)
{
    if (!ctx.hasInput(3))
        return x;
    int64_t const width = x.getDimensions().d[2];
    ITensor& bias = ctx.cast(ctx.tensor(3), x.getType());
    Dims const d = bias.getDimensions();
    if (d.nbDims != 1 || (d.d[0] >= 0 && d.d[0] < begin + width))
        ctx.invalid(fmt::format("the bias has shape {}; it needs {} numbers for input of shape {}", describe(d),
                                begin + width, describe(x.getDimensions())));
    return ctx.elementwise(x, ctx.unsqueeze(columns(ctx, bias, begin, width), {0, 1}), Op::kSUM);
}

ITensor& flat(ImportContext& ctx, int input, int64_t heads)
{
    ITensor& x = ctx.tensor(input);
    Dims const d = x.getDimensions();
    if (d.nbDims != 3 || d.d[2] < 1 || d.d[2] % heads != 0)
        ctx.invalid(fmt::format("input {} has shape {}; [batch, length, a known multiple of {} heads] is possible",
                                input, describe(d), heads));
    return x;
}

// [B, S, heads, parts, size]: part i as [B, S, heads * size].
ITensor& packed(ImportContext& ctx, int input, int64_t heads, int64_t parts, int64_t i)
{
    ITensor& x = ctx.tensor(input);
    Dims const d = x.getDimensions();
    if (d.d[2] != heads || d.d[3] != parts || d.d[4] < 1)
        ctx.invalid(fmt::format("input {} has shape {}; [batch, length, {}, {}, a known size] is possible", input,
                                describe(d), heads, parts));
    Sizes const s = ctx.sizesOf(x);
    return ctx.reshape(oneOf(ctx, x, 3, i), Sizes{s[0], s[1], Size(heads * d.d[4])});
}

void importMultiHeadAttention(ImportContext& ctx)
{
    int64_t const heads = headsOf(ctx);
    ctx.check(isFloating(ctx.tensor(0).getType()),
              fmt::format("its query is {}, not FLOAT or HALF", typeName(ctx.tensor(0).getType())));
    ctx.check(!ctx.hasInput(8) && !ctx.hasInput(9),
              "past_sequence_length and cache_indirection, buffers that are shared, cannot be imported here");
    if (ctx.hasInput(6) != ctx.hasInput(7))
        ctx.invalid("past_key and past_value belong together: one of them is missing");
    ITensor *q = nullptr, *k = nullptr, *v = nullptr;
    bool isCross = false; // keys and values are those of an encoder, in heads already
    if (!ctx.hasInput(1)) {
        if (ctx.input(0).rank() != 5)
            ctx.invalid(fmt::format("without a key the query has shape {}, not [batch, length, {}, 3, size]",
                                    describe(ctx.tensor(0).getDimensions()), heads));
        q = &packed(ctx, 0, heads, 3, 0), k = &packed(ctx, 0, heads, 3, 1), v = &packed(ctx, 0, heads, 3, 2);
    } else {
        q = &flat(ctx, 0, heads);
        int const rank = ctx.input(1).rank();
        if (rank != 5 && !ctx.hasInput(2))
            ctx.invalid("the value is missing");
        isCross = rank == 4;
        if (rank == 5)
            k = &packed(ctx, 1, heads, 2, 0), v = &packed(ctx, 1, heads, 2, 1);
        else if (isCross)
            k = &ctx.tensor(1), v = &ctx.tensor(2);
        else
            k = &flat(ctx, 1, heads), v = &flat(ctx, 2, heads);
    }
    int64_t const width = q->getDimensions().d[2];
    ITensor& queries = apartHeads(ctx, biased(ctx, *q, 0), heads);
    if (!isCross) {
        if (k->getDimensions().d[2] != width)
            ctx.invalid(fmt::format("queries have {} numbers, keys {}", width, k->getDimensions().d[2]));
        k = &apartHeads(ctx, biased(ctx, ctx.cast(*k, q->getType()), width), heads);
        v = &apartHeads(ctx, biased(ctx, ctx.cast(*v, q->getType()), 2 * width), heads);
    } else if (ctx.tensor(2).getDimensions().nbDims != 4 || k->getDimensions().d[1] != heads ||
               v->getDimensions().d[1] != heads) {
        ctx.invalid(fmt::format("keys have shape {} and values {}; [batch, {}, length, size] is possible",
                                describe(k->getDimensions()), describe(v->getDimensions()), heads));
    }
    Size const past = ctx.hasInput(6) ? ctx.sizesOf(ctx.tensor(6))[2] : Size(0);
    ITensor &keys = behindPast(ctx, 6, *k), &values = behindPast(ctx, 7, *v);
    if (ctx.wantsOutput(1))
        ctx.setOutput(1, keys);
    if (ctx.wantsOutput(2))
        ctx.setOutput(2, values);
    ctx.setOutput(0, joinedHeads(ctx, result(ctx, queries, keys, values, 4, 5, past)));
}

// ---- Attention

// Inputs of the operators that have queries, keys and values as one product; -1: it has none.
struct AttentionInputs
{
    int bias, mask, past, added;
};

// How many columns are queries, keys and values.
std::vector<int64_t> columnsOfParts(ImportContext& ctx, Dims const& weights, int64_t heads)
{
    if (weights.nbDims != 2 || weights.d[1] < 1)
        ctx.invalid(fmt::format("the weights have shape {}; [n, a known number] is possible", describe(weights)));
    int64_t const third = weights.d[1] / 3;
    std::vector<int64_t> const sizes = ctx.attrInts("qkv_hidden_sizes", {third, third, third});
    bool const fits = sizes.size() == 3 && sizes[0] == sizes[1] && sizes[0] > 0 && sizes[2] > 0 &&
                      sizes[0] % heads == 0 && sizes[2] % heads == 0 && sizes[0] <= weights.d[1] &&
                      sizes[2] <= weights.d[1] && sizes[0] + sizes[1] + sizes[2] == weights.d[1];
    if (!fits)
        ctx.invalid(
            fmt::format("weights of shape {} are none of queries, keys and values of {} heads and, where there are, "
                        "of qkv_hidden_sizes",
                        describe(weights), heads));
    return sizes;
}

// all: [B, S, columns], the product without its bias.
void setAttention(ImportContext& ctx, ITensor* all, Dims const& weights, std::vector<int64_t> const& sizes,
                  int64_t heads, AttentionInputs const& at)
{
    DataType const type = all->getType();
    if (ctx.hasInput(at.bias)) {
        ITensor& bias = ctx.cast(ctx.tensor(at.bias), type);
        if (Dims const b = bias.getDimensions(); b.nbDims != 1 || (b.d[0] >= 0 && b.d[0] != weights.d[1]))
            ctx.invalid(fmt::format("the bias has shape {}, the weights {}", describe(b), describe(weights)));
        all = &ctx.elementwise(*all, ctx.unsqueeze(bias, {0, 1}), Op::kSUM);
    }
    ITensor& q = apartHeads(ctx, columns(ctx, *all, 0, sizes[0]), heads);
    ITensor* k = &apartHeads(ctx, columns(ctx, *all, sizes[0], sizes[1]), heads);
    ITensor* v = &apartHeads(ctx, columns(ctx, *all, 2 * sizes[0], sizes[2]), heads);
    Size past(0);
    if (ctx.hasInput(at.past)) {
        ITensor& kept = ctx.cast(ctx.tensor(at.past), type);
        if (Dims const p = kept.getDimensions(); p.nbDims != 5 || p.d[0] != 2)
            ctx.invalid(fmt::format("past has shape {}; [2, batch, heads, length, size] is possible", describe(p)));
        past = ctx.sizesOf(kept)[3];
        k = &ctx.concat({&oneOf(ctx, kept, 0, 0), k}, 2);
        v = &ctx.concat({&oneOf(ctx, kept, 0, 1), v}, 2);
    }
    if (ctx.wantsOutput(1)) {
        if (sizes[0] != sizes[2])
            ctx.invalid("present holds keys and values, which have heads of different sizes");
        ctx.setOutput(1, ctx.concat({&ctx.unsqueeze(*k, {0}), &ctx.unsqueeze(*v, {0})}, 0));
    }
    ctx.setOutput(0, joinedHeads(ctx, result(ctx, q, *k, *v, at.mask, at.added, past)));
}

void checkInput(ImportContext& ctx, Dims const& d)
{
    ctx.check(ctx.attrInt("do_rotary", 0) == 0, "do_rotary cannot be imported; RotaryEmbedding can");
    ctx.check(ctx.attrInt("past_present_share_buffer", 0) == 0,
              "past_present_share_buffer cannot be imported here; GroupQueryAttention has caches that stay");
    if (d.nbDims != 3)
        ctx.invalid(fmt::format("the input has shape {}; [batch, length, n] is possible", describe(d)));
}

void importMicrosoftAttention(ImportContext& ctx)
{
    int64_t const heads = headsOf(ctx);
    ITensor &x = ctx.tensor(0), &w = ctx.tensor(1);
    checkInput(ctx, x.getDimensions());
    ctx.check(!ctx.hasInput(6),
              "past_sequence_length cannot be imported here; GroupQueryAttention has caches that stay");
    ctx.check(isFloating(x.getType()), fmt::format("its input is {}, not FLOAT or HALF", typeName(x.getType())));
    Dims const weights = w.getDimensions();
    auto const sizes = columnsOfParts(ctx, weights, heads);
    setAttention(ctx, &multiplied(ctx, x, ctx.cast(w, x.getType())), weights, sizes, heads, {2, 3, 4, 5});
}

// Of quantized input and weights.
void importQAttention(ImportContext& ctx)
{
    int64_t const heads = headsOf(ctx);
    Quantized const x = quantized(ctx, 0, 3, 6), w = quantized(ctx, 1, 4, 7);
    checkInput(ctx, x.q.dims());
    Dims const weights = w.q.dims();
    auto const sizes = columnsOfParts(ctx, weights, heads);
    InFloat const inFloat(ctx);
    ITensor& product = productInFloat(ctx, x, w);
    inFloat.apply();
    setAttention(ctx, &product, weights, sizes, heads, {2, 5, 8, -1});
}

} // namespace

ITensor& columns(ImportContext& ctx, ITensor& x, int64_t begin, int64_t count)
{
    Sizes size = ctx.sizesOf(x), from(size.size(), Size(0));
    from.back() = Size(begin);
    size.back() = Size(count);
    return ctx.slice(x, from, size, Sizes(size.size(), Size(1)));
}

void register_composites_multi_head_attention(ImporterMap& map)
{
    map.add("MultiHeadAttention", importMultiHeadAttention, 1, ImporterMap::kNewestOpset, kMicrosoft);
    map.add("QAttention", importQAttention, 1, ImporterMap::kNewestOpset, kMicrosoft);
    map.add("Attention", importMicrosoftAttention, 1, ImporterMap::kNewestOpset, kMicrosoft);
}

} // namespace tw::onnx
