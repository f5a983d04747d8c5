// SPDX-License-Identifier: Apache-2.0
#include "ops/one_hot/one_hot_params.h"
#include "ops/one_hot/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::one_hot {

namespace {

constexpr int kThreads = 256;

KernelBag generate(Problem const& problem, Config const&)
{
    KernelBag out;
    out.wide = isWide(problem);
    out.names = {"one_hot"};
    out.source =
        cuda::type("Element", cuda::unitOf(sizeOf(problem.outputs[0].type))) + cuda::include("ops/one_hot/one_hot.cuh");
    out.run = [&a = problem.node->attrsAs<Attrs>()](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const& y = args.outputs[0];
        int const axis = a.axisIn(y.dims.rank);
        Params p;
        p.indices = args.inputs[0].data;
        p.values = args.inputs[1].data;
        p.y = y.data;
        p.count = uint64_t(y.count());
        p.inner = cuda::divBy(y.dims.volume(axis + 1, y.dims.rank));
        p.depth = cuda::divBy(y.dims[axis]);
        return launch(0, blocksFor(y.count(), kThreads), kThreads, p);
    };
    return out;
}

constexpr CudaTactic kPlain{"one_hot_any_plain_cuda", 1, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::one_hot
