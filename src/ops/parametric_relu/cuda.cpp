// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/cuda_pointwise.h"
#include "ops/parametric_relu/op.h"

namespace tw::ops::parametric_relu {

namespace {

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const&)
{
    std::string const number = cuda::computeOf(p.outputs[0].type);
    return pointwiseKernels(p, {"parametric_relu",
                                {0, 1},
                                "TW_INLINE " + number + " apply(" + number + " x, " + number +
                                    " slope) { return x >= 0 ? x : slope * x; }\n"});
}

constexpr CudaTactic kPlain{"parametric_relu_any_plain_cuda", 1, generate, nullptr, nullptr, pointwiseFormatsOfAll};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::parametric_relu
