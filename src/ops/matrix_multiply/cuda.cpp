// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda_multiply.h"
#include "ops/matrix_multiply/op.h"

namespace tw::ops::matrix_multiply {

namespace {

CudaKernels generate(Problem const& p, Config const&)
{
    return multiplyKernels(p, -1, -1, FusedActivation(), multiplyGeometry);
}

constexpr CudaTactic kPlain{"matrix_multiply_plain_cuda", 1, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::matrix_multiply
