// SPDX-License-Identifier: Apache-2.0
// FP32 on tensor cores: kernels/cuda/attention_f32, with factors rounded to TF32 and without. The config: {warps,
// blocks, keys, parts}.
#include <algorithm>

#include "kernels/cuda/attention/mma_f32.h"
#include "ops/attention/cuda_fused.h"
#include "ops/attention/tactics.h"

namespace tw::ops::attention {

namespace {

namespace kernel = cuda::attention_f32;

Support supports(Problem const& problem)
{
    if (!problem.cuda || problem.cuda->capability < 80)
        return Support::no("needs compute capability 8.0");
    if (problem.node->attrsAs<Attrs>().integers)
        return Support::no("makes no integers");
    return supportsFused(problem, DataType::kFloat);
}

template <bool tf32x3>
kernel::Spec specOf(Problem const& problem, Config const& c, cuda::AttentionMasks const& masks)
{
    kernel::Spec s;
    auto const& a = problem.node->attrsAs<Attrs>();
    s.headDim = int(a.size);
    s.valueDim = int(a.valueSize);
    s.unit = copyUnit(problem);
    s.warps = int(c[0]);
    s.blocks = int(c[1]);
    s.keys = int(c[2]);
    s.parts = int(c[3]);
    s.masks = masks;
    s.tf32x3 = tf32x3;
    return s;
}

template <bool tf32x3>
std::vector<Config> configs(Problem const& problem)
{
    FusedSizes const z = fusedSizes(problem);
    int64_t const fitting = z.rows <= 16 ? 1 : z.rows <= 32 ? 2 : 4;
    cuda::AttentionMasks const masks = maskPlan(problem).masks;
    std::vector<Config> list;
    auto add = [&](int64_t warps, int64_t blocks, int64_t keys, int64_t parts = 1) {
        Config const c{warps, blocks, keys, parts};
        if (!unsupported(specOf<tf32x3>(problem, c, masks)) && std::find(list.begin(), list.end(), c) == list.end())
            list.push_back(c);
    };
    auto const& a = problem.node->attrsAs<Attrs>();
    if (std::max(a.size, a.valueSize) > 128) { // more does not fit registers and shared memory
        add(std::min<int64_t>(fitting, 2), 1, 32);
        add(1, 1, 32);
        return list;
    }
    add(fitting, 1, z.keys <= 32 ? 32 : 64);
    add(fitting, 1, 32);
    // Few blocks: more warps for each head, which share the keys.
    if (problem.outputs[0].dims[0] * problem.node->attrsAs<Attrs>().heads * ((z.rows + 63) / 64) <
        int64_t(problem.cuda->multiprocessors)) {
        add(fitting, 1, 32, 2);
        add(std::min<int64_t>(fitting, 2), 1, 32, 4);
    } else if (z.rows > 64) {
        add(4, 2, 32);
        add(8, 1, 32);
    }
    return list;
}

template <bool tf32x3>
std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config)
{
    return fusedKernels<FusedKernels<kernel::Spec>>(problem, config, 4, specOf<tf32x3>);
}

} // namespace

constinit CudaTactic const kTf32Mma{
    "attention_tf32_mma_sm80",          1, generate<false>, supports, configs<false>, nullptr, nullptr,
    Traits{.rounding = Rounding::kTf32}};
constinit CudaTactic const kF32Mma{"attention_f32_tf32x3_mma_sm80", 1, generate<true>, supports, configs<true>};

} // namespace tw::ops::attention
