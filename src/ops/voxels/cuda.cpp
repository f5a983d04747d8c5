// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "ops/voxels/op.h"
#include "ops/voxels/voxels_params.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::voxels {

namespace {

constexpr int kThreads = 512;
constexpr int64_t kMostClearing = 4096; // blocks

enum Kernels : int
{
    kClear,
    kLocate,
    kCount,
    kNumber,
    kMeasure,
    kBegin,
    kGather,
    kFeatures,
};

int64_t blocksOf(int64_t points)
{
    return std::max<int64_t>(blocksFor(points, kThreads), 1);
}

Support supports(Problem const& problem)
{
    return problem.inputs[0].maxDims[1] < INT32_MAX ? Support::yes() : Support::no("numbers points with 31 bits");
}

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    CudaSource source{.text = cuda::constant("THREADS", kThreads) + cuda::include("ops/voxels/voxels.cuh"),
                      .names = {"voxels_clear", "voxels_locate", "voxels_count", "voxels_number", "voxels_measure",
                                "voxels_begin", "voxels_gather", "voxels_features"}};
    return kernelsOf(
        std::move(source),
        [&a, grid = Grid(a)](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
            TensorRef const& points = args.inputs[0];
            int64_t const images = points.dims[0];
            if (images == 0)
                return {};
            Params p;
            p.points = points.as<float>();
            p.counts = args.inputs[1].as<int32_t>();
            p.voxels = args.outputs[0].as<float>();
            p.coordinates = args.outputs[1].as<int32_t>();
            p.found = args.outputs[2].as<int32_t>();
            p.m = points.dims[1];
            p.c = int32_t(points.dims[2]);
            p.allCells = grid.count();
            p.maxPoints = int32_t(a.maxPoints);
            p.maxVoxels = int32_t(a.maxVoxels);
            p.features = int32_t(a.features);
            p.images = int32_t(images);
            for (int d = 0; d < 3; ++d) {
                p.least[d] = grid.least[d];
                p.most[d] = grid.most[d];
                p.size[d] = grid.size[d];
                p.cells[d] = int32_t(grid.cells[d]);
            }
            p.blocksEach = int32_t(blocksOf(p.m));
            int32_t* free = static_cast<int32_t*>(args.workspace);
            auto const take = [&](int64_t each) { return std::exchange(free, free + images * each); };
            p.firsts = take(p.allCells);
            p.sizes = take(p.maxVoxels);
            p.begins = take(p.maxVoxels);
            p.filled = take(p.maxVoxels);
            p.cellOf = take(p.m);
            p.list = take(p.m);
            p.blocks = take(p.blocksEach);
            p.used = take(1);
            int64_t const clearing = blocksFor(images * std::max(grid.count(), a.maxVoxels * a.maxPoints), kThreads);
            TW_TRY(launch(kClear, std::min(clearing, kMostClearing), kThreads, p));
            for (int kernel : {kLocate, kCount, kNumber, kMeasure})
                TW_TRY(launch(kernel, images * p.blocksEach, kThreads, p));
            TW_TRY(launch(kBegin, blocksFor(images * a.maxVoxels, kThreads), kThreads, p));
            TW_TRY(launch(kGather, images * p.blocksEach, kThreads, p));
            return launch(kFeatures, blocksFor(images * a.maxVoxels * 32, kThreads), kThreads, p);
        },
        [&a](std::span<TensorRef const> inputs, std::span<TensorRef const>) {
            int64_t const m = inputs[0].dims[1];
            return inputs[0].dims[0] * (Grid(a).count() + 3 * a.maxVoxels + 2 * m + blocksOf(m) + 1) *
                   int64_t(sizeof(int32_t));
        });
}

constexpr CudaTactic kPlain{"voxels_f32_plain_cuda", 2, plainKernels, supports};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::voxels
