// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/cuda_conv_tactics.h"
#include "families/convolution/cuda_plain_convolution.h"
#include "ops/convolution/op.h"

namespace tw::ops::convolution {

namespace {

CudaKernels generate(Problem const& p, Config const&)
{
    return convolveKernels(p, WindowKind::kConvolution, FusedActivation());
}

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    return ConvolutionTactics<"convolution", generate>::list();
}

} // namespace tw::ops::convolution
