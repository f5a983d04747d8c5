// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda_multiply.h"
#include "ops/fused_fully_connected/op.h"

namespace tw::ops::fused_fully_connected {

namespace {

CudaKernels generate(Problem const& p, Config const&)
{
    return multiplyKernels(p, 2, -1, p.node->attrsAs<Attrs>().activation, connectedGeometry);
}

constexpr CudaTactic kPlain{"fused_fully_connected_plain_cuda", 1, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::fused_fully_connected
