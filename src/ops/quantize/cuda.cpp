// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/cuda_scale_axis.h"
#include "ops/quantize/op.h"

namespace tw::ops::quantize {

namespace {

void views(ir::Node const& node, RunArgs const& args, Extents& y, Extents* operands)
{
    scaleViews(node.attrsAs<Attrs>().axis, args, y, operands);
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const&)
{
    // The store rounds half to even, saturates, and makes NaN 0.
    return pointwiseKernels(
        p,
        {"quantize", {0, 1}, "TW_INLINE float apply(float x, float scale) { return __fdiv_rn(x, scale); }\n", views});
}

std::vector<Formats> formats(Problem const& p)
{
    return pointwiseFormats(p, {0, 1}, views);
}

constexpr CudaTactic kPlain{"quantize_any_plain_cuda", 2, generate, nullptr, nullptr, formats};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::quantize
