// SPDX-License-Identifier: Apache-2.0
#include "ops/lrn/lrn_params.h"
#include "ops/lrn/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::lrn {

namespace {

constexpr int kThreads = 256;

CudaSource sourceOf(Problem const& problem)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    return {.text = cuda::type("T", cuda::storageOf(problem.outputs[0].type)) +
                    cuda::longConstant("kReach", a.window / 2) + cuda::number("kK", a.k) +
                    cuda::number("kAlpha", float(double(a.alpha) / double(a.window))) + cuda::number("kBeta", a.beta) +
                    cuda::include("ops/lrn/lrn.cuh"),
            .names = {"lrn"},
            .wide = isWide(problem)};
}

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    return kernelsOf(sourceOf(problem), [](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        int const rank = x.dims.rank;
        Params p;
        p.x = x.data;
        p.y = y.data;
        p.count = uint64_t(y.count());
        p.plane = cuda::divBy(x.dims.volume(rank - 2, rank));
        p.channels = cuda::divBy(x.dims[rank - 3]);
        return launch(0, blocksFor(y.count(), kThreads), kThreads, p);
    });
}

constexpr CudaTactic kPlain{"lrn_any_plain_cuda", 1, plainKernels};

} // namespace

constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::lrn
