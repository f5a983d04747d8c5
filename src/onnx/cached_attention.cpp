// SPDX-License-Identifier: Apache-2.0
#include "onnx/cached_attention.h"

#include <algorithm>

#include "onnx/attention.h"

namespace tw::onnx {

using Op = nvinfer1::ElementWiseOperation;

namespace {

// The plugin that does it, where it has the form.
ITensor* byPlugin(ImportContext& ctx, ITensor& q, ITensor& keys, ITensor& values, ITensor& lengths,
                  CachedAttention const& how)
{
    Dims const d = q.getDimensions(), k = keys.getDimensions(), v = values.getDimensions();
    bool const isKnown =
        (how.heads > 0 ? d.d[2] : std::min(d.d[1], d.d[3])) > 0 && k.d[1] > 0 && k.d[3] > 0 && v.d[1] > 0 && v.d[3] > 0;
    if (!isKnown || !(how.scale > 0) || (how.left && *how.left >= INT32_MAX))
        return nullptr;
    auto const heads = int32_t(how.heads), isCausal = int32_t(how.isCausal),
               window = int32_t(how.isCausal && how.left ? *how.left + 1 : 0), hasMask = int32_t(how.bias != nullptr),
               hasSinks = int32_t(how.sinks != nullptr);
    auto const scale = float(how.scale), softcap = float(how.softcap);
    using enum nvinfer1::PluginFieldType;
    nvinfer1::PluginField const fields[] = {
        {"num_heads", &heads, kINT32, 1},    {"scale", &scale, kFLOAT32, 1},     {"is_causal", &isCausal, kINT32, 1},
        {"window", &window, kINT32, 1},      {"softcap", &softcap, kFLOAT32, 1}, {"has_mask", &hasMask, kINT32, 1},
        {"has_sinks", &hasSinks, kINT32, 1},
    };
    std::vector<ITensor*> inputs{&q, &keys, &values, &lengths};
    if (how.bias)
        inputs.push_back(how.bias);
    if (how.sinks)
        inputs.push_back(how.sinks);
    ITensor& y = standardPlugin(ctx, "CachedAttention", fields, inputs);
    if (!how.bias)
        return &y;
    // A bias may hide all keys that there are: 0, not 0 / 0.
    return &ctx.select(ctx.elementwise(y, y, Op::kEQUAL), y, ctx.scalarLike(0, y));
}

} // namespace

ITensor& cachedAttention(ImportContext& ctx, ITensor& q, ITensor& keys, ITensor& values, ITensor& lengths,
                         CachedAttention const& how)
{
    if (ITensor* const y = byPlugin(ctx, q, keys, values, lengths, how))
        return *y;
    if (how.heads > 0) {
        CachedAttention apart = how;
        apart.heads = 0;
        return joinedHeads(ctx, cachedAttention(ctx, apartHeads(ctx, q, how.heads), keys, values, lengths, apart));
    }
    Size const s = ctx.sizesOf(q)[2];
    ITensor& ends = ctx.unsqueeze(lengths, {1, 2, 3}); // [B, 1, 1, 1]
    ITensor& j = positions(ctx, ctx.sizesOf(keys)[2]); // [C]
    AttentionRule rule{how.scale, how.softcap, q.getType()};
    rule.sinks = how.sinks;
    rule.added = how.bias;
    rule.mayHideAll = true;
    if (!how.isCausal) {
        rule.keep = &ctx.elementwise(j, ends, Op::kLESS);
    } else {
        ITensor& begins = ctx.elementwise(ends, ctx.reshape(ctx.asScalar(s), unitDims(4)), Op::kSUB);
        ITensor& i = ctx.elementwise(ctx.unsqueeze(positions(ctx, s), {1}), begins, Op::kSUM); // [B, 1, s, 1]
        auto shifted = [&](int64_t by) -> ITensor& {
            return ctx.elementwise(i, ctx.scalar(double(by), DataType::kINT32, 4), Op::kSUM);
        };
        rule.keep = &ctx.elementwise(j, shifted(1), Op::kLESS);
        if (how.left)
            rule.keep = &andAlso(ctx, rule.keep, ctx.elementwise(shifted(-*how.left - 1), j, Op::kLESS));
    }
    return attended(ctx, q, keys, values, rule);
}

} // namespace tw::onnx
