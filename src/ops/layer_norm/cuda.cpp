// SPDX-License-Identifier: Apache-2.0
#include "ops/layer_norm/cuda_sources.h"

namespace tw::ops::layer_norm {

namespace {

constexpr int kThreads = 256;

class PlainKernels final : public CudaKernels
{
public:
    explicit PlainKernels(Problem const& problem)
        : CudaKernels({.text = constantsOf(problem) + cuda::include("ops/layer_norm/layer_norm_plain.cuh"),
                       .names = {"layer_norm"},
                       .wide = isWide(problem)}),
          attrs_(problem.node->attrsAs<Attrs>())
    {}
    Result<void> run(CudaLaunch const& launch, RunArgs& args) const override
    {
        Walk const w = walkOf(attrs_, args.inputs[0].dims);
        AnyParams p;
        setTensors(attrs_, args, p);
        p.n = uint64_t(w.within.volume());
        p.sets.set(w.sets);
        p.sets.setStrides(0, w.setStrides);
        p.sets.setStrides(1, w.setWeights);
        p.within.set(w.within);
        p.within.setStrides(0, w.withinStrides);
        p.within.setStrides(1, w.withinWeights);
        return launch(0, p.n == 0 ? 0 : w.sets.volume(), kThreads, p);
    }

private:
    Attrs const& attrs_;
};

constexpr CudaTactic kPlain{"layer_norm_any_plain_cuda", 4, makeKernels<PlainKernels>};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kRows, &kChunks, &kColumns, &kPixels, &kPlain};
    return kList;
}

} // namespace tw::ops::layer_norm
