// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention/mma_f16.h"

#include <algorithm>

#include "kernels/cuda/common/generate.h"
#include "kernels/cuda/common/hopper.h"

namespace tw::cuda::attention_f16 {

int64_t Spec::sharedBytes() const
{
    return int64_t(warps * 16 + 4 * keys) * (std::max(paddedHead(), paddedValue()) * 2 + 16);
}

std::string Spec::name() const
{
    return fmt::format(
        "attention_f16_d{}{}{}_{}x{}{}{}_sm80", headDim, valueDim != headDim ? fmt::format("_v{}", valueDim) : "",
        unit < 8 ? fmt::format("_u{}", unit) : "", warps * 16, keys, masks.name(), integers ? "_y8" : "");
}

char const* unsupported(Spec const& s)
{
    if (s.masks.segments && (s.masks.mask || s.masks.keep || s.masks.causal))
        return "sequences one behind the other have no masks";
    if (s.headDim < 1 || s.headDim > 256 || s.valueDim < 1 || s.valueDim > 256)
        return "heads have 1 to 256 elements";
    if ((s.unit != 1 && s.unit != 2 && s.unit != 4 && s.unit != 8) || s.headDim % s.unit || s.valueDim % s.unit)
        return "copies move 1, 2, 4 or 8 elements, and heads have a multiple of that";
    if ((s.warps != 1 && s.warps != 2 && s.warps != 4 && s.warps != 8) ||
        (s.keys != 32 && s.keys != 64 && s.keys != 128))
        return "1, 2, 4 or 8 warps, steps of 32, 64 or 128 keys";
    if (s.sharedBytes() > kSharedLimit)
        return "the tiles do not fit into shared memory";
    return nullptr;
}

std::string source(Spec const& s)
{
    int const moves = s.integers ? attentionUnit(1, {s.valueDim}) : s.unit, bytes = moves * (s.integers ? 1 : 2);
    char const* const moved = bytes == 16  ? "Unit"
                              : bytes == 8 ? "uint2"
                              : bytes == 4 ? "u32"
                              : bytes == 2 ? "u16"
                                           : "u8";
    return include("kernels/cuda/common/matrix.cuh") + constant("HEAD", s.headDim) + constant("D", s.paddedHead()) +
           constant("VALUE", s.valueDim) + constant("DV", s.paddedValue()) + constant("UNIT", s.unit) +
           constant("WARPS", s.warps) + constant("KEYS", s.keys) + constant("RESULT_UNIT", moves) +
           type("Moved", moved) + flag("INTEGERS", s.integers) + attentionSource(s.masks) +
           include("kernels/cuda/attention/mma_f16.cuh");
}

Args packed(Spec const& spec, Shape const& shape, void const* qkv)
{
    Args a;
    int64_t const width = shape.heads * spec.headDim;
    auto const* const base = static_cast<uint16_t const*>(qkv);
    a.q = base;
    a.k = base + width;
    a.v = base + 2 * width;
    a.qStride = a.kStride = a.vStride = {shape.sq * 3 * width, spec.headDim, 3 * width};
    a.yStride = {shape.sq * width, spec.headDim, width};
    a.sq = int32_t(shape.sq);
    a.sk = int32_t(shape.sk);
    return a;
}

} // namespace tw::cuda::attention_f16
