// SPDX-License-Identifier: Apache-2.0
// GroupQueryAttention of com.microsoft: the new keys, turned to their places, are written into the caches, and queries attend
// to these. Caches are buffers of a fixed length, which a client gives twice, or grow by a step's rows: as many rows leave
// as the longer of past_key and total_sequence_length says.
#include <cmath>

#include "onnx/attention.h"
#include "onnx/cached_attention.h"
#include "onnx/rotary.h"

namespace tw::onnx {

namespace {

using Op = nvinfer1::ElementWiseOperation;

enum Input : int
{
    kQuery,
    kKey,
    kValue,
    kPastKey,
    kPastValue,
    kLengths,
    kTotal,
    kCosines,
    kSines,
    kPositions,
    kBias,
    kSinks,
    kKeyScale,
    kValueScale,
    kQueryNorm,
    kKeyNorm,
    kQueryLengths,
};

// [B, S, heads, size]
struct Projections
{
    ITensor *q, *k, *v;
    int64_t size = 0;
};

void checkFlat(ImportContext& ctx, int input, int64_t heads)
{
    ITensor& x = ctx.tensor(input);
    Dims const d = x.getDimensions();
    if (d.nbDims != 3 || d.d[2] < 1 || d.d[2] % heads != 0)
        ctx.invalid(fmt::format("input {} has shape {}; [batch, length, a known multiple of {} heads] is possible",
                                input, describe(d), heads));
    ctx.check(isFloating(x.getType()), fmt::format("input {} is {}, not FLOAT or HALF", input, typeName(x.getType())));
}

Projections projectionsOf(ImportContext& ctx, int64_t heads, int64_t groups)
{
    ITensor& first = ctx.tensor(kQuery);
    bool const isPacked = !ctx.hasInput(kKey);
    if (isPacked == ctx.hasInput(kValue))
        ctx.invalid("key and value belong together: one of them is missing");
    checkFlat(ctx, kQuery, isPacked ? heads + 2 * groups : heads);
    int64_t const size = first.getDimensions().d[2] / (isPacked ? heads + 2 * groups : heads);
    auto apart = [&](ITensor& x, int64_t n) -> ITensor* {
        Sizes const s = ctx.sizesOf(x);
        return &ctx.reshape(x, Sizes{s[0], s[1], Size(n), Size(size)});
    };
    auto part = [&](int64_t begin, int64_t n) {
        Sizes s = ctx.sizesOf(first);
        s[2] = Size(n * size);
        return apart(ctx.slice(first, {Size(0), Size(0), Size(begin * size)}, s, Sizes(3, Size(1))), n);
    };
    if (isPacked)
        return {part(0, heads), part(heads, groups), part(heads + groups, groups), size};
    for (int const input : {kKey, kValue}) {
        checkFlat(ctx, input, groups);
        if (Dims const d = ctx.tensor(input).getDimensions(); d.d[2] != groups * size)
            ctx.invalid(fmt::format("input {} has shape {}, the query {}: heads of {} and {} numbers", input,
                                    describe(d), describe(first.getDimensions()), d.d[2] / groups, size));
    }
    return {apart(first, heads), apart(ctx.tensor(kKey), groups), apart(ctx.tensor(kValue), groups), size};
}

// An input of one integer for each image, as [B].
ITensor& countsAt(ImportContext& ctx, int input, char const* what)
{
    ITensor& t = ctx.tensor(input);
    Dims const d = t.getDimensions();
    bool const isColumn = d.nbDims == 2 && d.d[1] == 1; // as some exporters leave it
    if (t.getType() != DataType::kINT32 || (d.nbDims != 1 && !isColumn))
        ctx.invalid(fmt::format("{} is {} of shape {}, not integers of shape [batch]", what, typeName(t.getType()),
                                describe(d)));
    return isColumn ? ctx.squeeze(t, {1}) : t;
}

ITensor& plusNumber(ImportContext& ctx, ITensor& x, int64_t number)
{
    return ctx.elementwise(x, ctx.scalarLike(double(number), x), Op::kSUM);
}

// Where the first new row of each image goes: what it has in all, without the new ones. Rows behind those are padding.
ITensor& beginsOf(ImportContext& ctx, ITensor& totals, Size const& s)
{
    if (ctx.hasInput(kQueryLengths))
        return ctx.elementwise(totals, countsAt(ctx, kQueryLengths, "query_seqlens"), Op::kSUB);
    ITensor& rest = ctx.elementwise(totals, ctx.reshape(ctx.asScalar(s), unitDims(1)), Op::kSUB);
    return ctx.elementwise(rest, ctx.scalarLike(0, rest), Op::kMAX);
}

ITensor& normed(ImportContext& ctx, ITensor& x, int weights, char const* attr)
{
    float const epsilon = ctx.attrFloat(attr, ctx.attrFloat("qk_norm_epsilon", 1e-6f));
    ITensor& y = *rmsNormalized(ctx, x, 3, epsilon, true).y;
    return ctx.elementwise(y, ctx.unsqueeze(ctx.cast(ctx.tensor(weights), x.getType()), {0, 1, 2}), Op::kPROD);
}

// Cosines and sines of the new rows, for heads in front of the last dimension.
void turn(ImportContext& ctx, Projections& p, ITensor& begins, Size const& s)
{
    Dims const d = ctx.tensor(kCosines).getDimensions();
    if (d.nbDims != 2 || d.d[1] < 1 || 2 * int64_t(d.d[1]) > p.size)
        ctx.invalid(fmt::format("cos_cache has shape {}; [positions, up to {}] is possible for heads of {} numbers",
                                describe(d), p.size / 2, p.size));
    ITensor* places = nullptr;
    if (ctx.hasInput(kPositions)) {
        places = &ctx.tensor(kPositions);
        if (places->getType() != DataType::kINT32 || places->getDimensions().nbDims != 2)
            ctx.invalid(fmt::format("position_ids is {} of shape {}, not integers of shape [batch, length]",
                                    typeName(places->getType()), describe(places->getDimensions())));
    } else {
        places = &ctx.elementwise(ctx.unsqueeze(begins, {1}), ctx.unsqueeze(positions(ctx, s), {0}), Op::kSUM);
    }
    Rotary const how{2 * int64_t(d.d[1]), ctx.attrInt("rotary_interleaved", 0) != 0};
    ITensor& c = rotaryFactors(ctx, kCosines, *places, p.q->getType(), 2, how.turned / 2);
    ITensor& sines = rotaryFactors(ctx, kSines, *places, p.q->getType(), 2, how.turned / 2);
    p.q = &rotated(ctx, *p.q, c, sines, how);
    p.k = &rotated(ctx, *p.k, c, sines, how);
}

// Caches that may be as short as the window (sliding_window_cache) may also hold all positions; so they do here. One whose length is known has to have room
// for more than the window: what slides out of it cannot be told from what is there.
void checkRoom(ImportContext& ctx, Dims const& cache)
{
    int64_t const window = ctx.attrInt("local_window_size", -1);
    if (ctx.attrInt("sliding_window_cache", 0) != 0 && cache.d[2] >= 0 && cache.d[2] <= window)
        ctx.fail(fmt::format("sliding_window_cache with caches of {} rows, no more than the window of {}, cannot be "
                             "imported: caches keep the rows of all positions",
                             cache.d[2], window));
}

// The cache with the new rows x [B, s, groups, size].
ITensor& cacheWith(ImportContext& ctx, int input, ITensor& x, ITensor& begins, Size const& total)
{
    ITensor& rows = ctx.transpose(x, {0, 2, 1, 3});
    if (!ctx.hasInput(input))
        return rows;
    ITensor* cache = &ctx.tensor(input);
    Dims const d = cache->getDimensions(), r = rows.getDimensions();
    if (d.nbDims != 4 || (d.d[1] >= 0 && d.d[1] != r.d[1]) || (d.d[3] >= 0 && d.d[3] != r.d[3]))
        ctx.invalid(fmt::format("input {} has shape {}; [batch, {}, length, {}] is possible", input, describe(d),
                                r.d[1], r.d[3]));
    checkRoom(ctx, d);
    if (cache->getType() != rows.getType())
        ctx.fail(fmt::format("input {} is {}, keys and values are {}; caches that are quantized cannot be imported",
                             input, typeName(cache->getType()), typeName(rows.getType())));
    // One whose length is known holds all rows that there will be, unless the total is known to be more.
    Sizes size = ctx.sizesOf(*cache);
    if (!size[2].known() || (total.known() && total.value > size[2].value)) {
        size[2] = ctx.max(size[2], total);
        cache = &ctx.slice(*cache, Sizes(4, Size(0)), size, Sizes(4, Size(1)), nvinfer1::SliceMode::kFILL,
                           &ctx.scalar(0, cache->getType(), 0));
    }
    return scattered(ctx, *cache, rows, &begins, 2);
}

// What the layers have no form for.
void refuse(ImportContext& ctx)
{
    for (char const* attr : {"k_quant_type", "v_quant_type"})
        if (std::string const type = ctx.attrString(attr, "NONE"); type != "NONE")
            ctx.fail(fmt::format("{} is {}; caches that are quantized cannot be imported", attr, type));
    ctx.check(!ctx.wantsOutput(3), "its output 3, the scores, cannot be imported");
}

void importGroupQueryAttention(ImportContext& ctx)
{
    refuse(ctx);
    int64_t const heads = ctx.requireInt("num_heads"), groups = ctx.requireInt("kv_num_heads");
    if (heads < 1 || groups < 1 || heads % groups != 0 || heads > INT32_MAX)
        ctx.invalid(
            fmt::format("num_heads is {}, kv_num_heads {}; the first must be a multiple of the second", heads, groups));
    if (ctx.hasInput(kPastKey) != ctx.hasInput(kPastValue))
        ctx.invalid("past_key and past_value belong together: one of them is missing");
    Projections p = projectionsOf(ctx, heads, groups);
    DataType const type = p.q->getType();
    for (ITensor** const t : {&p.k, &p.v})
        *t = &ctx.cast(**t, type);
    Size const s = ctx.sizesOf(*p.q)[1];
    ITensor& totals = plusNumber(ctx, countsAt(ctx, kLengths, "seqlens_k"), 1);
    ITensor& begins = beginsOf(ctx, totals, s);
    if (ctx.hasInput(kQueryNorm) != ctx.hasInput(kKeyNorm))
        ctx.invalid("q_norm_weight and k_norm_weight belong together: one of them is missing");
    if (ctx.hasInput(kQueryNorm)) {
        p.q = &normed(ctx, *p.q, kQueryNorm, "q_norm_epsilon");
        p.k = &normed(ctx, *p.k, kKeyNorm, "k_norm_epsilon");
    }
    if (ctx.attrInt("do_rotary", 0) != 0)
        turn(ctx, p, begins, s);

    Sizes const total = ctx.sizesFrom(ctx.input(kTotal));
    if (total.size() != 1)
        ctx.invalid(fmt::format("total_sequence_length has {} elements, not one", total.size()));
    ITensor& keys = cacheWith(ctx, kPastKey, *p.k, begins, total[0]);
    ITensor& values = cacheWith(ctx, kPastValue, *p.v, begins, total[0]);
    if (ctx.wantsOutput(1))
        ctx.setOutput(1, keys);
    if (ctx.wantsOutput(2))
        ctx.setOutput(2, values);

    CachedAttention how;
    float const scale = ctx.attrFloat("scale", 0);
    how.scale = scale != 0 ? double(scale) : 1 / std::sqrt(double(p.size));
    how.softcap = ctx.attrFloat("softcap", 0);
    how.isCausal = ctx.attrInt("causal", 1) != 0;
    int64_t const window = ctx.attrInt("local_window_size", -1);
    if (window == 0 || window < -1 || window > INT32_MAX / 2 || (window > 0 && !how.isCausal))
        ctx.invalid(
            fmt::format("local_window_size is {} (allowed: -1 and, with causal 1, above 0, up to 2^30)", window));
    if (window > 0)
        how.left = window - 1;
    if (ctx.hasInput(kSinks)) {
        how.sinks = &ctx.tensor(kSinks);
        if (Dims const d = how.sinks->getDimensions(); d.nbDims != 1 || (d.d[0] >= 0 && d.d[0] != heads))
            ctx.invalid(fmt::format("head_sink has shape {}, there are {} heads", describe(d), heads));
    } else if (ctx.attrInt("smooth_softmax", 0) > 0) {
        how.sinks = &ctx.asTensor(Value(ctx.filled(0, type, Dims{1, {int32_t(heads)}})));
    }
    if (ctx.hasInput(kBias)) {
        ITensor& bias = ctx.cast(ctx.tensor(kBias), type);
        if (bias.getDimensions().nbDims != 4)
            ctx.invalid(fmt::format("attention_bias has shape {}; four dimensions are possible",
                                    describe(bias.getDimensions())));
        how.bias = &asLongAsKeys(ctx, bias, ctx.sizesOf(keys)[2], 0);
    }
    // Behind the valid rows of an image there is padding, whose result nobody reads: what its queries attend to is free.
    ITensor& ends = ctx.elementwise(begins, ctx.reshape(ctx.asScalar(s), unitDims(1)), Op::kSUM);
    how.heads = heads;
    Sizes const rows = ctx.sizesOf(*p.q);
    ITensor& q = ctx.reshape(*p.q, Sizes{rows[0], rows[1], Size(heads * p.size)});
    ctx.setOutput(0, cachedAttention(ctx, q, keys, values, how.isCausal ? ends : totals, how));
}

} // namespace

void register_composites_group_query_attention(ImporterMap& map)
{
    map.add("GroupQueryAttention", importGroupQueryAttention, 1, ImporterMap::kNewestOpset, kMicrosoft);
}

} // namespace tw::onnx
