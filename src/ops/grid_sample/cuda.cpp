// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/grid_sample/grid_sample_params.h"
#include "ops/grid_sample/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::grid_sample {

namespace {

constexpr int kThreads = 128;
constexpr int64_t kMostGroups = 65535; // blocks along the second dimension of a grid

// Channels that a thread takes: as many as leave every multiprocessor some blocks.
int64_t channelsOfThread(int64_t channels, int64_t blocks, int multiprocessors)
{
    int64_t const groups = std::clamp<int64_t>(8 * multiprocessors / std::max<int64_t>(blocks, 1), 1, kMostGroups);
    return (channels + groups - 1) / groups;
}

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    CudaSource source{.text = cuda::type("T", cuda::storageOf(problem.inputs[0].type)) +
                              cuda::type("G", cuda::storageOf(problem.inputs[1].type)) +
                              cuda::constant("kTaps", a.taps()) + cuda::constant("kOutside", int64_t(a.outside)) +
                              cuda::flag("kAlignCorners", a.alignCorners) +
                              cuda::include("ops/grid_sample/grid_sample.cuh"),
                      .names = {"grid_sample"},
                      .wide = isWide(problem)};
    return kernelsOf(std::move(source), [](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        if (y.count() == 0)
            return {};
        Params p{.x = x.data, .grid = args.inputs[1].data, .y = y.data, .points = cuda::divBy(y.dims[2] * y.dims[3])};
        p.all = uint64_t(y.dims[0]) * p.points.d;
        p.channels = uint32_t(x.dims[1]);
        p.h = int32_t(x.dims[2]);
        p.w = int32_t(x.dims[3]);
        int64_t const blocks = blocksFor(int64_t(p.all), kThreads);
        p.each = uint32_t(channelsOfThread(x.dims[1], blocks, launch.multiprocessors()));
        return launch.grid(0, blocks, blocksFor(x.dims[1], int(p.each)), 1, kThreads, p);
    });
}

constexpr CudaTactic kPlain{"grid_sample_any_plain_cuda", 1, plainKernels};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::grid_sample
