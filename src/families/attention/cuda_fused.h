// SPDX-License-Identifier: Apache-2.0
// What the tactics of fused attention kernels (kernels/cuda/attention_*) have in common. q, k and v are read where they
// lie, in one tensor or several.
#pragma once

#include "kernels/cuda/attention/few_rows.h"
#include "kernels/cuda/attention/mma_f16.h"
#include "ops/attention/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::attention {

// How the kernel sees the masks, and which inputs it then leaves unread.
struct MaskPlan
{
    cuda::AttentionMasks masks;
    int causalInput = -1;
};
MaskPlan maskPlan(Problem const& problem);

// Few queries on a head of keys; the config: {warps, blocks}.
cuda::attention_few_rows::Spec fewRowsSpec(Problem const& problem, Config const& c, cuda::AttentionMasks const& masks);
Support supportsFewRows(Problem const& problem);
std::vector<Config> fewRowsConfigs(Problem const& problem);

Support isAmpere(Problem const& problem);

// Elements that the rows of q, k, v and y can be copied by, of 16 bytes or less.
int copyUnit(Problem const& problem);

// Of q, k, v in `type`, heads up to 256 elements; keys of one image. mayBeBytes: k and v may be in INT8.
Support supportsFused(Problem const& problem, DataType type, bool mayBeBytes = false);
// The same with keys of several images, or in blocks.
Support supportsFusedTable(Problem const& problem, DataType type, bool mayBeBytes);

// Arguments of a run; nothing to do when there are no keys but to write zeros.
struct FusedRun
{
    cuda::AttentionArgs args;
    cuda::attention_f16::Shape shape;
};
FusedRun fusedRun(Attrs const& attrs, MaskPlan const& plan, RunArgs const& args);

// A fused kernel and how it sees the masks. Spec: that of the kernel.
template <class Spec>
class FusedKernels : public CudaKernels
{
public:
    FusedKernels(Problem const& problem, Spec const& spec)
        : CudaKernels(wholeSource(cuda::attention_f16::kKernel, spec)), spec_(spec),
          attrs_(problem.node->attrsAs<Attrs>()), plan_(maskPlan(problem))
    {}
    Result<void> run(CudaLaunch const& launcher, RunArgs& args) const override
    {
        FusedRun const r = runOf(args);
        return launcher.withGeometry(0, launch(spec_, r.shape), {&r.args});
    }
    bool readsOnDevice(size_t i) const override { return int(i) != plan_.causalInput; }

protected:
    FusedRun runOf(RunArgs const& args) const { return fusedRun(attrs_, plan_, args); }
    Spec const spec_;

private:
    Attrs const& attrs_;
    MaskPlan const plan_;
};
// None: the config comes from a damaged plan.
std::unique_ptr<CudaKernels> noAttention();
// Those of a config of so many numbers, by the problem's Spec, specOf(problem, config, masks); or none, if the plan that
// the config comes from is damaged.
template <class Kernels, class SpecOf>
std::unique_ptr<CudaKernels> fusedKernels(Problem const& problem, Config const& config, size_t numbers,
                                          SpecOf const& specOf)
{
    if (isConfig(config, numbers, 1, 256))
        if (auto const spec = specOf(problem, config, maskPlan(problem).masks); !unsupported(spec))
            return std::make_unique<Kernels>(problem, spec);
    return noAttention();
}

// Queries and keys at the optimum, at least one; of sequences one behind the other, those that tiles are chosen for.
struct FusedSizes
{
    int64_t rows, keys;
};
FusedSizes fusedSizes(Problem const& problem);

} // namespace tw::ops::attention
