// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda_convolve.h"
#include "ops/fused_convolution/op.h"

namespace tw::ops::fused_convolution {

namespace {

CudaKernels generate(Problem const& p, Config const&)
{
    return convolveKernels(p, WindowKind::kConvolution, p.node->attrsAs<Attrs>().activation);
}

constexpr CudaTactic kPlain{"fused_convolution_plain_cuda", 1, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::fused_convolution
