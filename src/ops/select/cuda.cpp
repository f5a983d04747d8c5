// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/cuda_pointwise.h"
#include "ops/select/op.h"

namespace tw::ops::select {

namespace {

std::unique_ptr<CudaKernels> generate(Problem const& p, Config const&)
{
    std::string const number = cuda::computeOf(p.outputs[0].type);
    return pointwiseKernels(
        p, {"select",
            {0, 1, 2},
            "TW_INLINE " + number + " apply(int c, " + number + " a, " + number + " b) { return c ? a : b; }\n"});
}

constexpr CudaTactic kPlain{"select_any_plain_cuda", 1, generate};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::select
