// SPDX-License-Identifier: Apache-2.0
#include "ops/layer_norm/cuda_sources.h"

namespace tw::ops::layer_norm {

namespace {

constexpr int kThreads = 256;

KernelBag generate(Problem const& problem, Config const&)
{
    KernelBag out;
    out.wide = isWide(problem);
    out.names = {"layer_norm"};
    out.source = constantsOf(problem) + cuda::include("ops/layer_norm/layer_norm_plain.cuh");
    out.run = [&a = problem.node->attrsAs<Attrs>()](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        Walk const w = walkOf(a, args.inputs[0].dims);
        AnyParams p;
        setTensors(a, args, p);
        p.n = uint64_t(w.within.volume());
        p.sets.set(w.sets);
        p.sets.setStrides(0, w.setStrides);
        p.sets.setStrides(1, w.setWeights);
        p.within.set(w.within);
        p.within.setStrides(0, w.withinStrides);
        p.within.setStrides(1, w.withinWeights);
        return launch(0, p.n == 0 ? 0 : w.sets.volume(), kThreads, p);
    };
    return out;
}

constexpr CudaTactic kPlain{"layer_norm_any_plain_cuda", 2, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kRows, &kChunks, &kColumns, &kPixels, &kPlain};
    return kList;
}

} // namespace tw::ops::layer_norm
