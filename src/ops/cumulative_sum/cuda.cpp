// SPDX-License-Identifier: Apache-2.0
#include "ops/cumulative_sum/cumulative_sum_params.h"
#include "ops/cumulative_sum/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::cumulative_sum {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kManyLines = 16384; // enough of them for a thread each, where neighbours lie side by side

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    DataType const t = problem.outputs[0].type;
    CudaSource source{
        .text = cuda::type("Element", cuda::storageOf(t)) + cuda::type("Number", isFloating(t) ? "double" : "u32") +
                cuda::type("Loaded", isFloating(t) ? "double" : "int") + cuda::flag("kReverse", a.reverse) +
                cuda::flag("kExclusive", a.exclusive) + cuda::include("ops/cumulative_sum/cumulative_sum.cuh"),
        .names = {"cumulative_sum_blocks", "cumulative_sum_threads"},
        .wide = isWide(problem),
        .isDependent = true};
    return kernelsOf(
        std::move(source),
        [axis = int(problem.node->attrsAs<Attrs>().axis)](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
            TensorRef const &x = args.inputs[0], &y = args.outputs[0];
            if (y.count() == 0)
                return {};
            int64_t const inner = x.dims.volume(axis + 1, x.dims.rank), lines = x.dims.volume(0, axis) * inner;
            Params const p{.x = x.data,
                           .y = y.data,
                           .lines = uint64_t(lines),
                           .length = uint64_t(x.dims[axis]),
                           .inner = cuda::divBy(inner)};
            if (inner > 1 && lines >= kManyLines)
                return launch(1, blocksFor(lines, kThreads), kThreads, p);
            return launch(0, lines, kThreads, p);
        });
}

constexpr CudaTactic kPlain{"cumulative_sum_any_plain_cuda", 1, plainKernels};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::cumulative_sum
