// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/round.h"
#include "ops/disentangled_attention/disentangled_attention_params.h"
#include "ops/disentangled_attention/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::disentangled_attention {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kTile = 32, kMostTokens = int64_t(1) << 20, kMostBatches = 65535; // of a grid

Support supports(Problem const& problem)
{
    return problem.inputs[0].maxDims[1] <= kMostTokens ? Support{} : Support::no("takes up to 2^20 tokens");
}

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    auto const& attrs = problem.node->attrsAs<Attrs>();
    CudaSource source{.text = cuda::type("T", cuda::storageOf(problem.inputs[0].type)) +
                              cuda::include("ops/disentangled_attention/disentangled_attention.cuh"),
                      .names = {"disentangled_attention_positions", "disentangled_attention"}};
    return kernelsOf(
        std::move(source),
        [&attrs](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
            TensorRef const& y = args.outputs[0];
            if (y.count() == 0)
                return {};
            int64_t const s = y.dims[1];
            Params p;
            p.content = args.inputs[0].data;
            p.to = args.inputs[1].data;
            p.from = args.inputs[2].data;
            p.y = y.data;
            p.positions = static_cast<int32_t*>(args.workspace);
            p.s = int32_t(s);
            p.span = int32_t(attrs.span);
            p.batch = int32_t(y.dims[0]);
            p.factor = float(attrs.factor);
            TW_TRY(launch(0, blocksFor(2 * s - 1, kThreads), kThreads, p));
            int64_t const tiles = divideUp(s, kTile);
            return launch.grid(1, tiles, tiles, std::min(y.dims[0], kMostBatches), kThreads, p);
        },
        [](std::span<TensorRef const> inputs, std::span<TensorRef const>) {
            return 2 * inputs[0].dims[1] * int64_t(sizeof(int32_t));
        });
}

constexpr CudaTactic kPlain{"disentangled_attention_any_plain_cuda", 1, plainKernels, supports};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kPlain>;

} // namespace tw::ops::disentangled_attention
