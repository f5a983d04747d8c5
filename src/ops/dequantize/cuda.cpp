// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/cuda_scale_axis.h"
#include "ops/dequantize/op.h"

namespace tw::ops::dequantize {

namespace {

void views(ir::Node const& node, RunArgs const& args, Extents& y, Extents* operands)
{
    scaleViews(node.attrsAs<Attrs>().axis, args, y, operands);
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const&)
{
    // Elements of i8 come as doubles.
    return pointwiseKernels(p, {"dequantize",
                                {0, 1},
                                "TW_INLINE float apply(double x, float scale) { return __fmul_rn(float(x), scale); }\n",
                                views});
}

constexpr CudaTactic kPlain{"dequantize_any_plain_cuda", 1, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::dequantize
