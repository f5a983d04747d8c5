// SPDX-License-Identifier: Apache-2.0
// Attention (opset 23 and later).
#include "onnx/attention.h"

#include <cmath>

#include "onnx/cached_attention.h"
#include "onnx/weights.h"

namespace tw::onnx {

namespace {

using Op = nvinfer1::ElementWiseOperation;

// q, k or v: [B, heads, S, size], or [B, S, heads * size] with the number of heads as attribute.
struct Operand
{
    ITensor* x = nullptr; // [B, heads, S, size]
    int64_t heads = 0;
};

Operand operandOf(ImportContext& ctx, int input, char const* attr)
{
    ITensor& x = ctx.tensor(input);
    Dims const d = x.getDimensions();
    ctx.check(isFloating(x.getType()), fmt::format("input {} is {}, not FLOAT or HALF", input, typeName(x.getType())));
    if (d.nbDims == 4) {
        ctx.check(d.d[1] > 0, fmt::format("input {} has shape {}; the number of heads (dimension 1) must be known",
                                          input, describe(d)));
        if (ctx.hasAttr(attr) && ctx.attrInt(attr, 0) != d.d[1])
            ctx.invalid(fmt::format("{} is {}, input {} has shape {}", attr, ctx.attrInt(attr, 0), input, describe(d)));
        return {&x, d.d[1]};
    }
    if (d.nbDims != 3)
        ctx.invalid(fmt::format("input {} has shape {}; 3 or 4 dimensions are possible", input, describe(d)));
    int64_t const heads = ctx.requireInt(attr);
    if (heads < 1 || d.d[2] % heads != 0)
        ctx.invalid(fmt::format("{} is {}, input {} has shape {}", attr, heads, input, describe(d)));
    ctx.check(d.d[2] > 0, fmt::format("input {} has shape {}; its last dimension must be known", input, describe(d)));
    return {&apartHeads(ctx, x, heads), heads};
}

// Queries i and keys j, and how many keys stand in front of the query 0.
struct Places
{
    ITensor *of, *keys; // i + offset: [Si, 1] or [B, 1, Si, 1]; j: [Sj]
};

Places placesOf(ImportContext& ctx, Size const& queries, Size const& keys, Size const& past, ITensor* lengths)
{
    ITensor* i = &ctx.unsqueeze(positions(ctx, queries), {1});
    if (lengths) {
        ITensor& offsets = ctx.elementwise(*lengths, ctx.reshape(ctx.asScalar(queries), unitDims(4)), Op::kSUB);
        i = &ctx.elementwise(*i, offsets, Op::kSUM);
    } else if (!past.known() || past.value != 0) {
        i = &ctx.elementwise(*i, ctx.reshape(ctx.asScalar(past), unitDims(2)), Op::kSUM);
    }
    return {i, &positions(ctx, keys)};
}

struct Window
{
    bool isCausal = false;
    int64_t left = -1, right = -1; // keys in front of a query's own place and behind it; -1: all
};

Window windowOf(ImportContext& ctx)
{
    Window const w{ctx.attrInt("is_causal", 0) != 0, ctx.attrInt("left_window_size", -1),
                   ctx.attrInt("right_window_size", -1)};
    if (w.left < -1 || w.right < -1 || w.left > INT32_MAX / 2 || w.right > INT32_MAX / 2)
        ctx.invalid(fmt::format("left_window_size is {}, right_window_size {} (allowed: -1 and above, up to 2^30)",
                                w.left, w.right));
    return w;
}

// nonpad_kv_seqlen; null where there is none.
ITensor* lengthsOf(ImportContext& ctx)
{
    if (!ctx.hasInput(6))
        return nullptr;
    ITensor& t = ctx.tensor(6);
    if (Dims const d = t.getDimensions(); d.nbDims != 1 || t.getType() != DataType::kINT32)
        ctx.invalid(fmt::format("nonpad_kv_seqlen is {} of shape {}, not integers of shape [batch]",
                                typeName(t.getType()), describe(d)));
    return &t;
}

// The part of the rule that places and lengths say.
void hideByPlace(ImportContext& ctx, Window const& w, Size const& queries, Size const& keys, Size const& past,
                 AttentionRule& m)
{
    ITensor* lengths = lengthsOf(ctx);
    if (lengths)
        lengths = &ctx.unsqueeze(*lengths, {1, 2, 3});
    if (w.isCausal || w.left >= 0 || w.right >= 0) {
        Places const at = placesOf(ctx, queries, keys, past, lengths);
        auto shifted = [&](int64_t by) -> ITensor& {
            ITensor& number = ctx.scalar(double(by), DataType::kINT32, at.of->getDimensions().nbDims);
            return ctx.elementwise(*at.of, number, Op::kSUM);
        };
        if (w.isCausal || w.right >= 0)
            m.keep = &ctx.elementwise(*at.keys, shifted(w.isCausal ? 1 : w.right + 1), Op::kLESS);
        if (w.left >= 0)
            m.keep = &andAlso(ctx, m.keep, ctx.elementwise(shifted(-w.left - 1), *at.keys, Op::kLESS));
    }
    if (lengths)
        m.keep = &andAlso(ctx, m.keep, ctx.elementwise(positions(ctx, keys), *lengths, Op::kLESS));
    m.mayHideAll = m.mayHideAll || lengths || w.left >= 0;
}

// The part of it that attn_mask says.
void hideByMask(ImportContext& ctx, DataType type, Size const& keys, AttentionRule& m)
{
    if (!ctx.hasInput(3))
        return;
    m.mayHideAll = true;
    ITensor& given = ctx.tensor(3);
    int const rank = given.getDimensions().nbDims;
    if (rank < 1 || rank > 4)
        ctx.invalid("the mask has shape " + describe(given.getDimensions()) + "; 1 to 4 dimensions are possible");
    if (given.getType() == DataType::kBOOL) {
        m.keep = &andAlso(ctx, m.keep, asLongAsKeys(ctx, given, keys, 0));
        return;
    }
    if (!isFloating(given.getType()))
        ctx.invalid("the mask is " + std::string(typeName(given.getType())) + "; BOOL, FLOAT and HALF are possible");
    m.added = &asLongAsKeys(ctx, ctx.cast(given, type), keys, kHidden);
}

// With nonpad_kv_seqlen keys and values are caches.
ITensor& overCaches(ImportContext& ctx, ITensor& q, int64_t heads, ITensor& keys, ITensor& values,
                    AttentionRule const& rule, Window const& w)
{
    CachedAttention how{rule.scale, rule.softcap, w.isCausal};
    how.heads = heads;
    if (w.left >= 0)
        how.left = w.left;
    AttentionRule mask;
    hideByMask(ctx, q.getType(), ctx.sizesOf(keys)[2], mask);
    if (mask.keep)
        mask.added = &ctx.select(*mask.keep, ctx.scalar(0, q.getType(), mask.keep->getDimensions().nbDims),
                                 ctx.scalar(kHidden, q.getType(), mask.keep->getDimensions().nbDims));
    if (mask.added)
        how.bias = &ctx.unsqueeze(*mask.added, allAxes(4 - mask.added->getDimensions().nbDims));
    return cachedAttention(ctx, q, keys, values, *lengthsOf(ctx), how);
}

DataType softmaxType(ImportContext& ctx, DataType type)
{
    int64_t const asked = ctx.attrInt("softmax_precision", 0);
    if (auto const precision = floatingType(asked, type))
        return *precision;
    ctx.invalid(fmt::format("softmax_precision is {} (allowed: 1, 10, 11, 16, the floating types)", asked));
}

void importAttention(ImportContext& ctx)
{
    Operand const q = operandOf(ctx, 0, "q_num_heads"), k = operandOf(ctx, 1, "kv_num_heads"),
                  v = operandOf(ctx, 2, "kv_num_heads");
    DataType const type = q.x->getType();
    if (k.heads != v.heads || q.heads % k.heads != 0)
        ctx.invalid(
            fmt::format("there are {} heads of queries, {} of keys and {} of values", q.heads, k.heads, v.heads));
    bool const hasPast = ctx.hasInput(4);
    if (hasPast != ctx.hasInput(5))
        ctx.invalid("past_key and past_value belong together: one of them is missing");
    if (hasPast && ctx.hasInput(6))
        ctx.invalid("nonpad_kv_seqlen has no meaning beside past_key and past_value");
    ITensor& keys = behindPast(ctx, 4, ctx.cast(*k.x, type));
    ITensor& values = behindPast(ctx, 5, ctx.cast(*v.x, type));
    if (ctx.wantsOutput(1))
        ctx.setOutput(1, keys);
    if (ctx.wantsOutput(2))
        ctx.setOutput(2, values);
    int64_t const mode = ctx.attrInt("qk_matmul_output_mode", 0);
    if (mode < 0 || mode > 3)
        ctx.invalid(fmt::format("qk_matmul_output_mode is {} (allowed: 0 to 3)", mode));
    int64_t const size = q.x->getDimensions().d[3];
    ctx.check(ctx.hasAttr("scale") || size > 0,
              "attribute 'scale' is missing, and the size of a head (the last dimension of queries) is not known");
    AttentionRule rule;
    rule.scale = ctx.hasAttr("scale") ? double(ctx.attrFloat("scale", 1)) : 1 / std::sqrt(double(size));
    rule.softcap = ctx.attrFloat("softcap", 0);
    rule.softmaxType = softmaxType(ctx, type);
    Window const window = windowOf(ctx);
    bool const hasForm = window.right < 0 && (window.isCausal || window.left < 0); // that attention over caches has
    if (ctx.hasInput(6) && hasForm && !ctx.wantsOutput(3) && rule.softmaxType == type) {
        bool const isFlat = ctx.input(0).rank() == 3;
        return ctx.setOutput(
            0, overCaches(ctx, isFlat ? ctx.tensor(0) : *q.x, isFlat ? q.heads : 0, keys, values, rule, window));
    }
    Size const past = hasPast ? ctx.sizesOf(ctx.tensor(4))[2] : Size(0), length = ctx.sizesOf(keys)[2];
    hideByPlace(ctx, window, ctx.sizesOf(*q.x)[2], length, past, rule);
    hideByMask(ctx, type, length, rule);
    ITensor& y = attended(ctx, *q.x, keys, values, rule, [&](ScoreStage stage, ITensor& scores) {
        constexpr ScoreStage kModes[] = {ScoreStage::kProducts, ScoreStage::kCapped, ScoreStage::kMasked,
                                         ScoreStage::kWeights};
        if (ctx.wantsOutput(3) && kModes[mode] == stage)
            ctx.setOutput(3, scores);
    });
    ctx.setOutput(0, ctx.input(0).rank() == 3 ? joinedHeads(ctx, y) : y);
}

} // namespace

void register_composites_attention(ImporterMap& map)
{
    map.add("Attention", importAttention, 23);
}

} // namespace tw::onnx
