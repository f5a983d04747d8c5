// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/few_rows.h"

#include "base/round.h"
#include "kernels/cuda/common/generate.h"

namespace tw::cuda::attention_few_rows {

std::string Spec::name() const
{
    return fmt::format("attention_f16_few_d{}{}_w{}_s{}{}{}", headDim,
                       valueDim != headDim ? fmt::format("_v{}", valueDim) : "", warps, splits,
                       std::string(table   ? "_table"
                                   : pages ? "_pages"
                                           : "") +
                           (bytes ? "_i8" : "") + (appends ? "_appends" : "") +
                           (rotary ? fmt::format("_rotary{}", rotary) : ""),
                       masks.name());
}

char const* unsupported(Spec const& s)
{
    if (s.headDim < 32 || s.headDim > 256 || s.headDim % 32 || s.valueDim < 32 || s.valueDim > 256 || s.valueDim % 32)
        return "heads have 32, 64 and so on up to 256 elements";
    auto isPower = [](int n) { return n == 1 || n == 2 || n == 4 || n == 8; };
    if (!isPower(s.warps) || !isPower(s.splits))
        return "1, 2, 4 or 8 warps and as many blocks";
    if (s.isLarge() && s.warps > 4)
        return "more than 4 warps of more than 128 elements are more than the shared memory of some devices";
    if (s.rotary % 8 != 0 || s.rotary < 0 || s.rotary > s.headDim || (!s.interleaved && s.rotary % 16 != 0))
        return "pairs that are turned lie in whole units of 8";
    if ((s.rotary > 0 && (!s.appends || s.bytes)) || (s.appends && (s.table || s.pages)))
        return "neither a table or blocks beside new rows nor turned bytes";
    if (s.masks.segments || s.masks.scoreSteps || s.masks.sumSteps || s.masks.weightSteps)
        return "neither sequences one behind the other nor rounding";
    if (s.table && s.pages)
        return "keys are of several images, or in blocks";
    return nullptr;
}

std::string source(Spec const& s)
{
    return include("kernels/cuda/common/matrix.cuh") + constant("D", s.headDim) + constant("DV", s.valueDim) +
           constant("WARPS", s.warps) + constant("SPLITS", s.splits) + constant("KEYS", 16) + flag("TABLE", s.table) +
           flag("PAGES", s.pages) + flag("BYTES", s.bytes) + flag("APPENDS", s.appends) + constant("ROTARY", s.rotary) +
           flag("INTERLEAVED", s.interleaved) + flag("COSINES_BY_PAIR", s.cosinesByPair) +
           flag("SINES_BY_PAIR", s.sinesByPair) + attentionSource(s.masks) +
           include("kernels/cuda/attention/few_rows.cuh");
}

LaunchGeometry launch(Spec const& spec, attention_f16::Shape const& shape)
{
    LaunchGeometry g;
    g.grid = divideUp(shape.sq * spec.headsPerKey, Spec::kRows) * spec.splits;
    g.gridY = shape.heads / spec.headsPerKey;
    g.gridZ = shape.batch;
    g.block = spec.threads();
    g.cluster = spec.splits;
    g.sharedBytes = spec.sharedBytes();
    return g;
}

} // namespace tw::cuda::attention_few_rows
