// SPDX-License-Identifier: Apache-2.0
#include "ops/shape/op.h"
#include "ops/shape/shape_params.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::shape {

namespace {

std::unique_ptr<CudaKernels> plainKernels(Problem const&, Config const&)
{
    CudaSource source = {.text = cuda::include("ops/shape/shape.cuh"), .names = {"shape"}};
    return kernelsOf(std::move(source), [](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        Extents const& x = args.inputs[0].dims;
        Params p;
        p.y = args.outputs[0].data;
        for (int d = 0; d < x.rank; ++d)
            p.dims[d] = int32_t(x[d]);
        return launch(0, 1, x.rank, p);
    });
}

constexpr CudaTactic kPlain{"shape_any_plain_cuda", 1, plainKernels};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::shape
