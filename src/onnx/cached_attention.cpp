// SPDX-License-Identifier: Apache-2.0
#include "onnx/cached_attention.h"

#include "onnx/attention.h"

namespace tw::onnx {

using Op = nvinfer1::ElementWiseOperation;

ITensor& cachedAttention(ImportContext& ctx, ITensor& q, ITensor& keys, ITensor& values, ITensor& lengths,
                         CachedAttention const& how)
{
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
