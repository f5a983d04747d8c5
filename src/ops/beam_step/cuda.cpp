// SPDX-License-Identifier: Apache-2.0
#include "ops/beam_step/launch.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::beam_step {

namespace {

constexpr int kThreads = 256;
static_assert(kThreads >= kMostBeams);

Result<void> runRows(CudaLaunch const& launch, RunArgs& args)
{
    Params const p = paramsOf(args);
    int64_t const rows = args.inputs[kSequences].dims[0];
    TW_TRY(launch(0, rows * p.beams, kThreads, p));
    return launch(1, rows, kThreads, p);
}

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    return kernelsOf({.text = cuda::include("ops/beam_step/beam_step.cuh"),
                      .names = {"beam_best", "beam_step"},
                      .wide = isWide(problem)},
                     runRows, [](std::span<TensorRef const> in, std::span<TensorRef const>) { return keyBytes(in); });
}

constexpr CudaTactic kPlain{"beam_step_any_plain_cuda", 1, plainKernels};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::beam_step
