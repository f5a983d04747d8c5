// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/voxels/op.h"
#include "ops/voxels/voxels_params.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::voxels {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostClearing = 4096; // blocks

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    CudaSource source{.text = cuda::constant("THREADS", kThreads) + cuda::include("ops/voxels/voxels.cuh"),
                      .names = {"voxels_clear", "voxels_fill", "voxels_features"}};
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
            p.slots = static_cast<int32_t*>(args.workspace);
            p.sizes = p.slots + images * grid.count();
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
            int64_t const clearing = blocksFor(images * std::max(grid.count(), a.maxVoxels * a.maxPoints), kThreads);
            TW_TRY(launch(0, std::min(clearing, kMostClearing), kThreads, p));
            TW_TRY(launch(1, images, kThreads, p));
            return launch(2, blocksFor(images * a.maxVoxels * 32, kThreads), kThreads, p);
        },
        [&a](std::span<TensorRef const> inputs, std::span<TensorRef const>) {
            return inputs[0].dims[0] * (Grid(a).count() + a.maxVoxels) * int64_t(sizeof(int32_t));
        });
}

constexpr CudaTactic kPlain{"voxels_f32_plain_cuda", 1, plainKernels};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::voxels
