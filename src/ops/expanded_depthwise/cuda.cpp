// SPDX-License-Identifier: Apache-2.0
// GPU builds do not make this op: a plan that was built on a CPU may bring it.
#include "families/convolution/cuda_plain_convolution.h"
#include "ops/expanded_depthwise/op.h"

namespace tw::ops::expanded_depthwise {

namespace {

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const&)
{
    auto const& a = p.node->attrsAs<Attrs>();
    return convolveTwiceKernels(p, a.inner, a.outer);
}

constexpr CudaTactic kPlain{"expanded_depthwise_f32_plain_cuda", 1, generate};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::expanded_depthwise
