// SPDX-License-Identifier: Apache-2.0
#include "ops/one_hot/one_hot_params.h"
#include "ops/one_hot/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::one_hot {

namespace {

constexpr int kThreads = 256;

class PlainKernels final : public CudaKernels
{
public:
    explicit PlainKernels(Problem const& problem)
        : CudaKernels({.text = cuda::type("Element", cuda::unitOf(sizeOf(problem.outputs[0].type))) +
                               cuda::include("ops/one_hot/one_hot.cuh"),
                       .names = {"one_hot"},
                       .wide = isWide(problem)}),
          attrs_(problem.node->attrsAs<Attrs>())
    {}
    Result<void> run(CudaLaunch const& launch, RunArgs& args) const override
    {
        TensorRef const& y = args.outputs[0];
        int const axis = attrs_.axisIn(y.dims.rank);
        Params p;
        p.indices = args.inputs[0].data;
        p.values = args.inputs[1].data;
        p.y = y.data;
        p.count = uint64_t(y.count());
        p.inner = cuda::divBy(y.dims.volume(axis + 1, y.dims.rank));
        p.depth = cuda::divBy(y.dims[axis]);
        return launch(0, blocksFor(y.count(), kThreads), kThreads, p);
    }

private:
    Attrs const& attrs_;
};

constexpr CudaTactic kPlain{"one_hot_any_plain_cuda", 1, makeKernels<PlainKernels>};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::one_hot
