// SPDX-License-Identifier: Apache-2.0
#include "ops/deformable_attention/deformable_attention_params.h"
#include "ops/deformable_attention/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::deformable_attention {

namespace {

constexpr int kThreads = 128;

// Numbers of a head that a thread has: as many as one access brings.
int64_t packOf(Problem const& problem)
{
    TensorSpec const& value = problem.inputs[kValue];
    int64_t v = 16 / sizeOf(value.type);
    while (v > 1 && (!problem.node->inputs[kValue]->shape[3].isConst() || value.dims[3] % v != 0))
        v /= 2;
    return v;
}

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    int64_t const v = packOf(problem);
    CudaSource source{.text = cuda::type("T", cuda::storageOf(problem.inputs[kValue].type)) +
                              cuda::constant("WIDTH", v) +
                              cuda::include("ops/deformable_attention/deformable_attention.cuh"),
                      .names = {"deformable_attention", "deformable_attention_single"},
                      .wide = isWide(problem)};
    return kernelsOf(std::move(source), [width = v](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &y = args.outputs[0], &weights = args.inputs[kWeights];
        if (y.count() == 0)
            return {};
        auto const isAligned = [&](void const* at) {
            return reinterpret_cast<uintptr_t>(at) % size_t(width * sizeOf(y.type)) == 0;
        };
        bool const isPacked = isAligned(y.data) && isAligned(args.inputs[kValue].data);
        int64_t const v = isPacked ? width : 1;
        Params p;
        p.value = args.inputs[kValue].data;
        p.locations = args.inputs[kLocations].data;
        p.weights = weights.data;
        p.shapes = args.inputs[kShapes].as<int32_t>();
        p.starts = args.inputs[kStarts].as<int32_t>();
        p.y = y.data;
        p.count = uint64_t(y.count() / v);
        p.packs = cuda::divBy(y.dims[3] / v);
        p.heads = cuda::divBy(y.dims[2]);
        p.queries = cuda::divBy(y.dims[1]);
        p.rows = args.inputs[kValue].dims[1];
        p.levels = int32_t(weights.dims[3]);
        p.points = int32_t(weights.dims[4]);
        return launch(isPacked ? 0 : 1, blocksFor(y.count() / v, kThreads), kThreads, p);
    });
}

constexpr CudaTactic kPlain{"deformable_attention_any_plain_cuda", 1, plainKernels};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::deformable_attention
