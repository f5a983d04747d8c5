// SPDX-License-Identifier: Apache-2.0
#include "ops/layer_norm/layout.h"

namespace tw::ops::layer_norm {

namespace {

constexpr int kThreads = 256;

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    auto const& attrs = problem.node->attrsAs<Attrs>();
    CudaSource source = {.text = constantsOf(problem) + cuda::include("ops/layer_norm/layer_norm_plain.cuh"),
                         .names = {"layer_norm"},
                         .wide = isWide(problem)};
    return kernelsOf(std::move(source), [&attrs](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        Walk const w = walkOf(attrs, args.inputs[0].dims);
        AnyParams p;
        setTensors(attrs, args, p);
        p.n = uint64_t(w.within.volume());
        p.sets.set(w.sets);
        p.sets.setStrides(0, w.setStrides);
        p.sets.setStrides(1, w.setWeights);
        p.within.set(w.within);
        p.within.setStrides(0, w.withinStrides);
        p.within.setStrides(1, w.withinWeights);
        return launch(0, p.n == 0 ? 0 : w.sets.volume(), kThreads, p);
    });
}

constexpr CudaTactic kPlain{"layer_norm_any_plain_cuda", 4, plainKernels};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kRows, kChunks, kColumns, kPixels, kPlain>;

} // namespace tw::ops::layer_norm
