// SPDX-License-Identifier: Apache-2.0
#include "onnx/attention.h"

namespace tw::onnx {

using nvinfer1::ActivationType;
using Op = nvinfer1::ElementWiseOperation;

ITensor& apartHeads(ImportContext& ctx, ITensor& x, int64_t heads)
{
    Sizes const s = ctx.sizesOf(x);
    ITensor& parts = ctx.reshape(x, Sizes{s[0], s[1], Size(heads), Size(s[2].value / heads)});
    return ctx.transpose(parts, {0, 2, 1, 3});
}

ITensor& joinedHeads(ImportContext& ctx, ITensor& x)
{
    ITensor& y = ctx.transpose(x, {0, 2, 1, 3});
    Sizes const s = ctx.sizesOf(y);
    return ctx.reshape(y, Sizes{s[0], s[1], ctx.mul(s[2], s[3])});
}

ITensor& behindPast(ImportContext& ctx, int input, ITensor& x)
{
    if (!ctx.hasInput(input))
        return x;
    ITensor& past = ctx.cast(ctx.tensor(input), x.getType());
    if (past.getDimensions().nbDims != 4)
        ctx.invalid(fmt::format("input {} has shape {}; [batch, heads, length, size] is possible", input,
                                describe(past.getDimensions())));
    return ctx.concat({&past, &x}, 2);
}

ITensor& andAlso(ImportContext& ctx, ITensor* a, ITensor& b)
{
    return a ? ctx.elementwise(*a, b, Op::kAND) : b;
}

ITensor& plus(ImportContext& ctx, ITensor* a, ITensor& b)
{
    return a ? ctx.elementwise(*a, b, Op::kSUM) : b;
}

ITensor& asLongAsKeys(ImportContext& ctx, ITensor& x, Size const& keys, double fill)
{
    int const rank = x.getDimensions().nbDims;
    Sizes size = ctx.sizesOf(x);
    Size const given = size[size_t(rank - 1)];
    if (given.known() && keys.known()) {
        if (given.value > keys.value)
            ctx.invalid(
                fmt::format("the mask has shape {}, there are {} keys", describe(x.getDimensions()), keys.value));
        if (given.value == keys.value)
            return x;
    }
    size.back() = keys;
    ITensor* const value = x.getType() == DataType::kBOOL ? nullptr : &ctx.scalar(fill, x.getType(), 0);
    Sizes const zeros(size_t(rank), Size(0)), ones(size_t(rank), Size(1));
    return ctx.slice(x, zeros, size, ones, nvinfer1::SliceMode::kFILL, value);
}

namespace {

// [B, heads, S, size], each head `times` times, one behind the other.
ITensor& repeatedHeads(ImportContext& ctx, ITensor& x, int64_t times)
{
    if (times == 1)
        return x;
    Sizes const s = ctx.sizesOf(x);
    ITensor& apart = ctx.slice(ctx.unsqueeze(x, {2}), Sizes(5, Size(0)), {s[0], s[1], Size(times), s[2], s[3]},
                               {Size(1), Size(1), Size(0), Size(1), Size(1)});
    return ctx.reshape(apart, Sizes{s[0], Size(s[1].value * times), s[2], s[3]});
}

// Over the keys, beside one more score of each head, where there are sinks.
ITensor& softmaxBeside(ImportContext& ctx, ITensor& scores, ITensor* sinks)
{
    if (!sinks)
        return softmax(ctx, scores, 3);
    Sizes size = ctx.sizesOf(scores);
    Size const keys = size[3];
    size[3] = Size(1);
    ITensor& column = ctx.expand(ctx.unsqueeze(ctx.cast(*sinks, scores.getType()), {0, 2, 3}), size);
    ITensor& weights = softmax(ctx, ctx.concat({&scores, &column}, 3), 3);
    size[3] = keys;
    return ctx.slice(weights, Sizes(4, Size(0)), size, Sizes(4, Size(1)));
}

} // namespace

ITensor& attended(ImportContext& ctx, ITensor& q, ITensor& k, ITensor& v, AttentionRule const& rule,
                  std::function<void(ScoreStage, ITensor&)> const& seen)
{
    auto show = [&](ScoreStage stage, ITensor& t) {
        if (seen)
            seen(stage, t);
    };
    DataType const type = q.getType();
    int64_t const perKey = int64_t(q.getDimensions().d[1]) / k.getDimensions().d[1];
    ITensor& scaled = ctx.elementwise(q, ctx.scalarLike(rule.scale, q), Op::kPROD);
    ITensor* scores = &ctx.matmul(scaled, repeatedHeads(ctx, k, perKey), false, true);
    show(ScoreStage::kProducts, *scores);
    if (rule.softcap > 0) {
        ITensor& small = ctx.elementwise(*scores, ctx.scalarLike(rule.softcap, *scores), Op::kDIV);
        scores = &ctx.elementwise(ctx.activation(small, ActivationType::kTANH), ctx.scalarLike(rule.softcap, *scores),
                                  Op::kPROD);
    }
    show(ScoreStage::kCapped, *scores);
    if (rule.keep)
        scores = &ctx.select(*rule.keep, *scores, ctx.scalarLike(kHidden, *scores));
    if (rule.added)
        scores = &ctx.elementwise(*scores, *rule.added, Op::kSUM);
    show(ScoreStage::kMasked, *scores);
    ITensor* weights = &softmaxBeside(ctx, ctx.cast(*scores, rule.softmaxType), rule.sinks);
    if (rule.mayHideAll && !rule.sinks) // where nothing is left the result is 0, not 0 / 0
        weights = &ctx.select(ctx.elementwise(*weights, *weights, Op::kEQUAL), *weights, ctx.scalarLike(0, *weights));
    weights = &ctx.cast(*weights, type);
    show(ScoreStage::kWeights, *weights);
    return ctx.matmul(*weights, repeatedHeads(ctx, v, perKey));
}

} // namespace tw::onnx
