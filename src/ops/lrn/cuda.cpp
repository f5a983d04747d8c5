// SPDX-License-Identifier: Apache-2.0
#include "ops/lrn/lrn_params.h"
#include "ops/lrn/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::lrn {

namespace {

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    CudaSource source{.text = cuda::type("T", cuda::storageOf(problem.outputs[0].type)) +
                              cuda::longConstant("kReach", a.window / 2) + cuda::number("kK", a.k) +
                              cuda::number("kAlpha", float(double(a.alpha) / double(a.window))) +
                              cuda::number("kBeta", a.beta) + cuda::include("ops/lrn/lrn.cuh"),
                      .names = {"lrn"},
                      .wide = isWide(problem)};
    return kernelsOf(std::move(source), [](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        int const rank = x.dims.rank;
        Params const p{.x = x.data,
                       .y = y.data,
                       .count = uint64_t(y.count()),
                       .plane = cuda::divBy(x.dims.volume(rank - 2, rank)),
                       .channels = cuda::divBy(x.dims[rank - 3])};
        return launch.each(0, y.count(), p);
    });
}

constexpr CudaTactic kPlain{"lrn_any_plain_cuda", 1, plainKernels};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::lrn
