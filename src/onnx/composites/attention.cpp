// SPDX-License-Identifier: Apache-2.0
// Attention (opset 23 and later): the layers that exporters write for it, of which a pass makes one node
// (passes/attention/fuse_attention.cpp).
#include <cmath>
#include <limits>

#include "onnx/importer.h"
#include "onnx/weights.h"

namespace tw::onnx {

namespace {

using nvinfer1::ActivationType;
using nvinfer1::UnaryOperation;
using Op = nvinfer1::ElementWiseOperation;

constexpr double kHidden = -std::numeric_limits<double>::infinity(); // what is added to the scores of hidden keys

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
    Sizes const s = ctx.sizesOf(x);
    ITensor& parts = ctx.reshape(x, Sizes{s[0], s[1], Size(heads), Size(d.d[2] / heads)});
    return {&ctx.transpose(parts, {0, 2, 1, 3}), heads};
}

// Behind the keys or values that are kept from earlier calls.
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

// [B, heads, S, size], each head `times` times, one behind the other.
ITensor& repeatedHeads(ImportContext& ctx, ITensor& x, int64_t times)
{
    if (times == 1)
        return x;
    Sizes const s = ctx.sizesOf(x);
    ITensor& apart = ctx.expand(ctx.unsqueeze(x, {2}), {s[0], s[1], Size(times), s[2], s[3]});
    return ctx.reshape(apart, Sizes{s[0], Size(s[1].value * times), s[2], s[3]});
}

ITensor& andAlso(ImportContext& ctx, ITensor* a, ITensor& b)
{
    return a ? ctx.elementwise(*a, b, Op::kAND) : b;
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

// The mask of a node with its last dimension as long as the keys: what is missing hides them.
ITensor& wholeMask(ImportContext& ctx, ITensor& mask, Size const& keys)
{
    int const rank = mask.getDimensions().nbDims;
    Sizes size = ctx.sizesOf(mask);
    Size const given = size[size_t(rank - 1)];
    if (given.known() && keys.known()) {
        if (given.value > keys.value)
            ctx.invalid(
                fmt::format("the mask has shape {}, there are {} keys", describe(mask.getDimensions()), keys.value));
        if (given.value == keys.value)
            return mask;
    }
    size.back() = keys;
    ITensor* const fill = mask.getType() == DataType::kBOOL ? nullptr : &ctx.scalar(kHidden, mask.getType(), 0);
    Sizes const zeros(size_t(rank), Size(0)), ones(size_t(rank), Size(1));
    return ctx.slice(mask, zeros, size, ones, nvinfer1::SliceMode::kFILL, fill);
}

// What says which keys a query attends to: where `keep` is false it does not, `mask` is added.
struct Mask
{
    ITensor *keep = nullptr, *mask = nullptr;
    bool mayHideAll = false; // all keys of a query
};

Mask maskOf(ImportContext& ctx, DataType type, Size const& queries, Size const& keys, Size const& past)
{
    Mask m;
    ITensor* lengths = nullptr;
    if (ctx.hasInput(6)) {
        ITensor& t = ctx.tensor(6);
        Dims const d = t.getDimensions();
        if (d.nbDims != 1 || t.getType() != DataType::kINT32)
            ctx.invalid(fmt::format("nonpad_kv_seqlen is {} of shape {}, not integers of shape [batch]",
                                    typeName(t.getType()), describe(d)));
        lengths = &ctx.unsqueeze(t, {1, 2, 3});
        m.mayHideAll = true;
    }
    int64_t const left = ctx.attrInt("left_window_size", -1), right = ctx.attrInt("right_window_size", -1);
    if (left < -1 || right < -1 || left > INT32_MAX / 2 || right > INT32_MAX / 2)
        ctx.invalid(fmt::format("left_window_size is {}, right_window_size {} (allowed: -1 and above, up to 2^30)",
                                left, right));
    bool const isCausal = ctx.attrInt("is_causal", 0) != 0;
    if (isCausal || left >= 0 || right >= 0) {
        Places const at = placesOf(ctx, queries, keys, past, lengths);
        auto shifted = [&](int64_t by) -> ITensor& {
            ITensor& number = ctx.scalar(double(by), DataType::kINT32, at.of->getDimensions().nbDims);
            return ctx.elementwise(*at.of, number, Op::kSUM);
        };
        if (isCausal || right >= 0)
            m.keep = &ctx.elementwise(*at.keys, shifted(isCausal ? 1 : right + 1), Op::kLESS);
        if (left >= 0)
            m.keep = &andAlso(ctx, m.keep, ctx.elementwise(shifted(-left - 1), *at.keys, Op::kLESS));
        m.mayHideAll = m.mayHideAll || left >= 0;
    }
    if (lengths)
        m.keep = &andAlso(ctx, m.keep, ctx.elementwise(positions(ctx, keys), *lengths, Op::kLESS));
    if (!ctx.hasInput(3))
        return m;
    m.mayHideAll = true;
    ITensor& given = ctx.tensor(3);
    int const rank = given.getDimensions().nbDims;
    if (rank < 1 || rank > 4)
        ctx.invalid("the mask has shape " + describe(given.getDimensions()) + "; 1 to 4 dimensions are possible");
    if (given.getType() == DataType::kBOOL) {
        m.keep = &andAlso(ctx, m.keep, wholeMask(ctx, given, keys));
        return m;
    }
    if (!isFloating(given.getType()))
        ctx.invalid("the mask is " + std::string(typeName(given.getType())) + "; BOOL, FLOAT and HALF are possible");
    m.mask = &wholeMask(ctx, ctx.cast(given, type), keys);
    return m;
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
    auto wantsScores = [&, mode = ctx.attrInt("qk_matmul_output_mode", 0)](int64_t which) {
        return ctx.wantsOutput(3) && mode == which;
    };
    if (int64_t const mode = ctx.attrInt("qk_matmul_output_mode", 0); mode < 0 || mode > 3)
        ctx.invalid(fmt::format("qk_matmul_output_mode is {} (allowed: 0 to 3)", mode));

    int64_t const size = q.x->getDimensions().d[3];
    ctx.check(ctx.hasAttr("scale") || size > 0,
              "attribute 'scale' is missing, and the size of a head (the last dimension of queries) is not known");
    double const scale = ctx.hasAttr("scale") ? double(ctx.attrFloat("scale", 1)) : 1 / std::sqrt(double(size));
    int64_t const perKey = q.heads / k.heads;
    ITensor& scaled = ctx.elementwise(*q.x, ctx.scalarLike(scale, *q.x), Op::kPROD);
    ITensor* scores = &ctx.matmul(scaled, repeatedHeads(ctx, keys, perKey), false, true);
    if (wantsScores(0))
        ctx.setOutput(3, scores);
    if (float const cap = ctx.attrFloat("softcap", 0); cap > 0) {
        ITensor& small = ctx.elementwise(*scores, ctx.scalarLike(cap, *scores), Op::kDIV);
        scores =
            &ctx.elementwise(ctx.activation(small, ActivationType::kTANH), ctx.scalarLike(cap, *scores), Op::kPROD);
    }
    if (wantsScores(1))
        ctx.setOutput(3, scores);
    Size const past = hasPast ? ctx.sizesOf(ctx.tensor(4))[2] : Size(0);
    Mask const m = maskOf(ctx, type, ctx.sizesOf(*q.x)[2], ctx.sizesOf(keys)[2], past);
    if (m.keep)
        scores = &ctx.select(*m.keep, *scores, ctx.scalarLike(kHidden, *scores));
    if (m.mask)
        scores = &ctx.elementwise(*scores, *m.mask, Op::kSUM);
    if (wantsScores(2))
        ctx.setOutput(3, scores);

    auto& softmax = ctx.added(ctx.network().addSoftMax(ctx.cast(*scores, softmaxType(ctx, type))));
    softmax.setAxes(1u << 3);
    ITensor* weights = &ctx.out(softmax);
    if (m.mayHideAll) // where nothing is left the result is 0, not 0 / 0
        weights = &ctx.select(ctx.elementwise(*weights, *weights, Op::kEQUAL), *weights, ctx.scalarLike(0, *weights));
    weights = &ctx.cast(*weights, type);
    if (wantsScores(3))
        ctx.setOutput(3, weights);
    ITensor* y = &ctx.matmul(*weights, repeatedHeads(ctx, values, perKey));
    if (ctx.input(0).rank() == 3) {
        y = &ctx.transpose(*y, {0, 2, 1, 3});
        Sizes const s = ctx.sizesOf(*y);
        y = &ctx.reshape(*y, Sizes{s[0], s[1], ctx.mul(s[2], s[3])});
    }
    ctx.setOutput(0, y);
}

} // namespace

void register_composites_attention(ImporterMap& map)
{
    map.add("Attention", importAttention, 23);
}

} // namespace tw::onnx
