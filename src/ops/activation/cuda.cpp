// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/cuda_pointwise.h"
#include "kernels/cuda/common/source.h"
#include "ops/activation/op.h"

namespace tw::ops::activation {

namespace {

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const&)
{
    auto const& a = p.node->attrsAs<Attrs>();
    bool const isHalf = isNarrowFloat(p.outputs[0].type);
    return pointwiseKernels(p, {"activation",
                                {0},
                                (isHalf ? cuda::include("kernels/cuda/common/half_math.cuh") : "") +
                                    activationSource("apply", int(a.kind), a.alpha, a.beta, isHalf)});
}

constexpr CudaTactic kPlain{"activation_any_plain_cuda", 2, generate, nullptr, nullptr, pointwiseFormatsOfAll};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::activation
