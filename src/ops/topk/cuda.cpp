// SPDX-License-Identifier: Apache-2.0
#include "ops/topk/op.h"
#include "ops/topk/topk_params.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::topk {

namespace {

constexpr int kThreads = 256;

Support supports(Problem const& p)
{
    constexpr int64_t kMost = int64_t(65535) * kThreads;
    int const axis = int(p.node->attrsAs<Attrs>().axis);
    if (p.inputs[0].maxDims[axis] > kMost)
        return Support::no(fmt::format("takes at most {} elements along the axis", kMost));
    return Support::yes();
}

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    auto const& attrs = problem.node->attrsAs<Attrs>();
    CudaSource source{.text = cuda::type("T", cuda::storageOf(problem.inputs[0].type)) +
                              cuda::flag("kLargest", problem.node->attrsAs<Attrs>().kind == Kind::kMax) +
                              cuda::constant("kThreads", kThreads) + cuda::include("ops/topk/topk.cuh"),
                      .names = {"topk"},
                      .wide = isWide(problem)};
    return kernelsOf(std::move(source), [&attrs](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const& x = args.inputs[0];
        int const axis = int(attrs.axis);
        int64_t const inner = x.dims.volume(axis + 1, x.dims.rank);
        Params const p{.x = x.data,
                       .values = args.outputs[0].data,
                       .indices = args.outputs[1].data,
                       .n = uint64_t(x.dims[axis]),
                       .k = attrs.k,
                       .inner = cuda::divBy(inner)};
        return launch.grid(0, x.dims.volume(0, axis) * inner, blocksFor(x.dims[axis], kThreads), 1, kThreads, p);
    });
}

constexpr CudaTactic kPlain{"topk_any_plain_cuda", 1, plainKernels, supports};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::topk
