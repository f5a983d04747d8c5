// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/cuda_conv_tactics.h"
#include "families/convolution/cuda_plain_convolution.h"
#include "ops/fused_convolution/op.h"

namespace tw::ops::fused_convolution {

namespace {

CudaKernels generate(Problem const& p, Config const&)
{
    return convolveKernels(p, WindowKind::kConvolution, p.node->attrsAs<Attrs>().activation);
}

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    return ConvolutionTactics<"fused_convolution", generate>::list();
}

} // namespace tw::ops::fused_convolution
