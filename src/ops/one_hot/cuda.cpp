// SPDX-License-Identifier: Apache-2.0
#include "ops/one_hot/one_hot_params.h"
#include "ops/one_hot/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::one_hot {

namespace {

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    auto const& attrs = problem.node->attrsAs<Attrs>();
    CudaSource source = {.text = cuda::type("Element", cuda::unitOf(sizeOf(problem.outputs[0].type))) +
                                 cuda::include("ops/one_hot/one_hot.cuh"),
                         .names = {"one_hot"},
                         .wide = isWide(problem)};
    return kernelsOf(std::move(source), [&attrs](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const& y = args.outputs[0];
        int const axis = attrs.axisIn(y.dims.rank);
        Params const p{.indices = args.inputs[0].data,
                       .values = args.inputs[1].data,
                       .y = y.data,
                       .count = uint64_t(y.count()),
                       .inner = cuda::divBy(y.dims.volume(axis + 1, y.dims.rank)),
                       .depth = cuda::divBy(y.dims[axis])};
        return launch.each(0, y.count(), p);
    });
}

constexpr CudaTactic kPlain{"one_hot_any_plain_cuda", 1, plainKernels};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::one_hot
