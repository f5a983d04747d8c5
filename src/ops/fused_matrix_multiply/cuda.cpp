// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda_multiply.h"
#include "ops/fused_matrix_multiply/op.h"

namespace tw::ops::fused_matrix_multiply {

namespace {

CudaKernels generate(Problem const& p, Config const&)
{
    return multiplyKernels(p, 2, 3, p.node->attrsAs<Attrs>().activation, multiplyGeometry);
}

constexpr CudaTactic kPlain{"fused_matrix_multiply_plain_cuda", 1, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::fused_matrix_multiply
