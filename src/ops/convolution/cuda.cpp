// SPDX-License-Identifier: Apache-2.0
#include "ops/convolution/op.h"
#include "ops/cuda_convolve.h"

namespace tw::ops::convolution {

namespace {

CudaKernels generate(Problem const& p, Config const&)
{
    return convolveKernels(p, WindowKind::kConvolution, FusedActivation());
}

constexpr CudaTactic kPlain{"convolution_plain_cuda", 1, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::convolution
