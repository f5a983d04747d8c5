// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/mma_f32.h"

#include <algorithm>

#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/hopper.h"

namespace tw::cuda::attention_f32 {

int64_t Spec::sharedBytes() const
{
    return int64_t(rows() + 4 * keys * parts) * (std::max(paddedHead(), paddedValue()) * 4 + 16);
}

std::string Spec::name() const
{
    return fmt::format(
        "attention_{}_d{}{}{}_{}x{}{}{}{}_sm80", tf32x3 ? "f32" : "tf32", headDim,
        valueDim != headDim ? fmt::format("_v{}", valueDim) : "", unit < 4 ? fmt::format("_u{}", unit) : "", rows(),
        keys, blocks > 1 ? fmt::format("_b{}", blocks) : "", parts > 1 ? fmt::format("_p{}", parts) : "", masks.name());
}

char const* unsupported(Spec const& s)
{
    if (s.masks.segments && (s.masks.mask || s.masks.keep || s.masks.causal))
        return "sequences one behind the other have no masks";
    if (s.headDim < 1 || s.headDim > 256 || s.valueDim < 1 || s.valueDim > 256)
        return "heads have 1 to 256 elements";
    if ((s.unit != 1 && s.unit != 2 && s.unit != 4) || s.headDim % s.unit || s.valueDim % s.unit)
        return "copies move 1, 2 or 4 elements, and heads have a multiple of that";
    if ((s.warps != 1 && s.warps != 2 && s.warps != 4 && s.warps != 8) || (s.keys != 32 && s.keys != 64) ||
        (s.blocks != 1 && s.blocks != 2) || (s.parts != 1 && s.parts != 2 && s.parts != 4) || s.threads() > 256)
        return "1, 2, 4 or 8 warps, 1 or 2 blocks of 16 queries for each, steps of 32 or 64 keys in 1, 2 or 4 "
               "parts, at most 256 threads";
    if (s.masks.weightSteps && s.parts > 1)
        return "weights are rounded by the sum of all keys, of which a part knows its own alone";
    if (s.blocks == 2 && std::max(s.paddedHead(), s.paddedValue()) * (s.tf32x3 ? 2 : 1) > 128)
        return "two blocks of queries for each warp do not fit its registers";
    if (s.sharedBytes() > 163 * 1024) // of capability 8.0
        return "the tiles do not fit into shared memory";
    return nullptr;
}

std::string source(Spec const& s)
{
    AttentionMasks masks = s.masks;
    masks.single = true;
    return include("kernels/cuda/common/matrix.cuh") + constant("HEAD", s.headDim) + constant("D", s.paddedHead()) +
           constant("VALUE", s.valueDim) + constant("DV", s.paddedValue()) + constant("UNIT", s.unit) +
           constant("WARPS", s.warps) + constant("KEYS", s.keys) + constant("BLOCKS", s.blocks) +
           constant("PARTS", s.parts) + flag("TF32X3", s.tf32x3) + attentionSource(masks) +
           include("kernels/cuda/attention/mma_f32.cuh");
}

} // namespace tw::cuda::attention_f32
