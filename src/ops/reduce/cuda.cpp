// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/reduce/cuda_arithmetic.h"
#include "ops/reduce/op.h"
#include "ops/reduce/reduce_params.h"

namespace tw::ops::reduce {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kBlockFrom = 64; // elements for each result from which a whole block works on it

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    auto const& attrs = problem.node->attrsAs<Attrs>();
    CudaSource source = {.text = arithmeticOf(problem.node->attrsAs<Attrs>(), problem.inputs[0].type) +
                                 cuda::constant("RANK", std::max(problem.inputs[0].dims.rank, 1)) +
                                 cuda::include("ops/reduce/reduce.cuh"),
                         .names = {"reduce_threads", "reduce_blocks"},
                         .wide = isWide(problem)};
    return kernelsOf(std::move(source), [&attrs](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        Extents const strides = stridesOf(x.dims);
        // Neighbours of one kind are walked as one dimension.
        Extents dims[2], along[2];
        int previous = -1;
        for (int d = 0; d < x.dims.rank; ++d) {
            int const kind = attrs.has(d) ? 1 : 0;
            int const last = dims[kind].rank - 1;
            if (kind == previous) {
                dims[kind][last] *= x.dims[d];
                along[kind][last] = strides[d];
            } else {
                dims[kind].push(x.dims[d]);
                along[kind].push(strides[d]);
            }
            previous = kind;
        }
        Params p{.x = x.data, .y = y.data, .results = uint64_t(y.count()), .count = uint64_t(dims[1].volume())};
        p.kept.set(dims[0]);
        p.kept.setStrides(0, along[0]);
        p.reduced.set(dims[1]);
        p.reduced.setStrides(0, along[1]);
        if (int64_t(p.count) >= kBlockFrom)
            return launch(1, y.count(), kThreads, p);
        return launch(0, blocksFor(y.count(), kThreads), kThreads, p);
    });
}

constexpr CudaTactic kPlain{"reduce_any_plain_cuda", 1, plainKernels};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kNhwc, kNhwcF32, kShortRows, kRows, kColumns, kPlain>;

} // namespace tw::ops::reduce
