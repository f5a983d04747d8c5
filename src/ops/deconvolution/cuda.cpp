// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda_convolve.h"
#include "ops/deconvolution/op.h"

namespace tw::ops::deconvolution {

namespace {

CudaKernels generate(Problem const& p, Config const&)
{
    return convolveKernels(p, WindowKind::kDeconvolution, FusedActivation());
}

constexpr CudaTactic kPlain{"deconvolution_plain_cuda", 1, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::deconvolution
