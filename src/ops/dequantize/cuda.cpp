// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/cuda_pointwise.h"
#include "ops/dequantize/op.h"

namespace tw::ops::dequantize {

namespace {

void views(ir::Node const& node, RunArgs const& args, Extents& y, Extents* operands)
{
    scaleViews(node.attrsAs<Attrs>().axis, args, y, operands);
}

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const&)
{
    return pointwiseKernels(p, {"dequantize",
                                {0, 1},
                                "TW_INLINE float apply(float x, float scale) { return __fmul_rn(x, scale); }\n",
                                views,
                                true});
}

std::vector<Formats> formats(Problem const& p)
{
    return pointwiseFormats(p, {0, 1}, views);
}

constexpr CudaTactic kPlain{"dequantize_any_plain_cuda", 2, generate, nullptr, nullptr, formats};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::dequantize
