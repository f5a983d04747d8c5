// SPDX-License-Identifier: Apache-2.0
#include "ops/non_zero/non_zero_params.h"
#include "ops/non_zero/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::non_zero {

namespace {

constexpr int kThreads = 1024;

// The size of y is known only when the first pass is through: the run waits for it.
std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    DataType const t = problem.inputs[0].type;
    CudaSource source{.text = cuda::type("T", cuda::storageOf(t)) +
                              cuda::type("Number", isFloating(t) ? "float" : "int") +
                              cuda::include("ops/non_zero/non_zero.cuh"),
                      .names = {"non_zero"},
                      .wide = isWide(problem)};
    return kernelsOf(
        std::move(source),
        [](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
            TensorRef const& x = args.inputs[0];
            TensorRef& y = args.outputs[0];
            Params p{
                .x = x.data, .y = y.data, .found = args.workspace, .count = uint64_t(x.count()), .rank = x.dims.rank};
            for (int d = 0; d < x.dims.rank; ++d)
                p.dim[kMaxRank - x.dims.rank + d] = cuda::divBy(x.dims[d]);
            TW_TRY(launch(0, 1, kThreads, p));
            uint64_t found = 0;
            cuda::Driver const& driver = launch.device().driver();
            TW_CUDA(driver, cuMemcpyDtoHAsync(&found, cuda::addressOf(args.workspace), sizeof(found), launch.stream()));
            TW_CUDA(driver, cuStreamSynchronize(launch.stream()));
            y.dims[1] = int64_t(found);
            p.n = found;
            return found > 0 ? launch(0, 1, kThreads, p) : Result<void>();
        },
        [](std::span<TensorRef const>, std::span<TensorRef const>) { return int64_t(sizeof(uint64_t)); });
}

constexpr CudaTactic kPlain{"non_zero_any_plain_cuda", 1, plainKernels};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::non_zero
