// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda_multiply.h"
#include "ops/fully_connected/op.h"

namespace tw::ops::fully_connected {

namespace {

CudaKernels generate(Problem const& p, Config const&)
{
    return multiplyKernels(p, 2, -1, FusedActivation(), connectedGeometry);
}

constexpr CudaTactic kPlain{"fully_connected_plain_cuda", 1, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::fully_connected
