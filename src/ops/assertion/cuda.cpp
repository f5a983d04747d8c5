// SPDX-License-Identifier: Apache-2.0
// Conditions are shape tensors, which engines have on the host: this is for those who run the op alone.
#include "ops/assertion/assertion_params.h"
#include "ops/assertion/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::assertion {

namespace {

constexpr int kThreads = 128;

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    auto const& node = *problem.node;
    CudaSource source = {
        .text = cuda::include("ops/assertion/assertion.cuh"), .names = {"assertion"}, .wide = isWide(problem)};
    return kernelsOf(
        std::move(source),
        [&node](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
            TensorRef const& x = args.inputs[0];
            Params const p{.x = x.data, .first = args.workspace, .count = uint64_t(x.count())};
            TW_TRY(launch(0, 1, kThreads, p));
            uint64_t first = 0;
            cuda::Driver const& driver = launch.device().driver();
            TW_CUDA(driver, cuMemcpyDtoHAsync(&first, cuda::addressOf(args.workspace), sizeof(first), launch.stream()));
            TW_CUDA(driver, cuStreamSynchronize(launch.stream()));
            if (first == p.count)
                return {};
            std::string const what = node.attrsAs<Attrs>().failure(int64_t(first), x.count());
            return failedExecution("assertion '" + node.name + "': " + what);
        },
        [](std::span<TensorRef const>, std::span<TensorRef const>) { return int64_t(sizeof(uint64_t)); });
}

constexpr CudaTactic kPlain{"assertion_bool_plain_cuda", 1, plainKernels};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::assertion
