// SPDX-License-Identifier: Apache-2.0
// Reductions of the innermost axes: of rows that lie together.
#include <algorithm>

#include "ops/reduce/cuda_arithmetic.h"
#include "ops/reduce/reduce_params.h"

namespace tw::ops::reduce {

namespace rows {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kBlockRows = 2048;       // elements of a row from which a block works on it
constexpr int64_t kMostShares = 4096;      // blocks that work on a row
constexpr int64_t kShareBytes = 16 * 1024; // of each, where there are several
constexpr int64_t kBlocks = 4;             // of a multiprocessor
constexpr int64_t kFewShares = 16;         // more of them are better than one in any case
constexpr int64_t kMostAhead = 8;          // packs that a thread loads before it uses the first
constexpr int64_t kLongRow = 64 * 1024;    // bytes from which so many are worth their registers
constexpr int64_t kWarpShares = 64;        // shares that a warp puts together; a block does more

// The plainest one for the config of a damaged plan.
struct Choice
{
    int64_t shares = 1, ahead = kMostAhead / 2;
};
Choice choiceOf(Config const& config)
{
    if (!isConfig(config, 2, 1, kMostShares) || config[1] > kMostAhead)
        return {};
    return {config[0], config[1]};
}

Support supports(Problem const& problem)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    Extents const& x = problem.inputs[0].maxDims;
    bool inner = true; // only axes after the kept ones
    for (int d = x.rank - 1, seenKept = 0; d >= 0; --d) {
        if (x[d] == 1)
            continue;
        if (!a.has(d))
            seenKept = 1;
        else
            inner = inner && !seenKept;
    }
    return inner ? Support::yes() : Support::no("reduces the innermost axes only");
}

// {blocks that share a row, packs that a lane loads ahead}
std::vector<Config> configs(Problem const& problem)
{
    TensorSpec const &x = problem.inputs[0], &y = problem.outputs[0];
    int64_t const rows = std::max<int64_t>(y.dims.volume(), 1), bytes = x.dims.volume() / rows * sizeOf(x.type),
                  processors = problem.cuda ? problem.cuda->multiprocessors : 1;
    int64_t const shares = std::min({processors * kBlocks / rows, bytes / kShareBytes, kMostShares});
    std::vector<Config> list;
    if (shares > 1)
        list.push_back({shares, kMostAhead});
    if (shares <= kFewShares)
        list.push_back({1, bytes >= kLongRow ? kMostAhead : kMostAhead / 2});
    return list;
}

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config)
{
    Choice const choice = choiceOf(config);
    CudaSource source = {.text = arithmeticOf(problem.node->attrsAs<Attrs>(), problem.inputs[0].type) +
                                 cuda::constant("PACKS_AHEAD", choice.ahead) +
                                 cuda::constant("BLOCKS", choice.ahead > kMostAhead / 2 ? 4 : 6) +
                                 cuda::include("ops/reduce/reduce_rows.cuh"),
                         .names = {"reduce_warps", "reduce_rows", "reduce_rows_finish", "reduce_rows_finish_many"},
                         .wide = isWide(problem),
                         .isDependent = true};
    return kernelsOf(
        std::move(source),
        [shares = choice.shares](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
            TensorRef const &x = args.inputs[0], &y = args.outputs[0];
            int64_t const rows = y.count();
            RowsParams const p{.x = x.data,
                               .y = y.data,
                               .parts = args.workspace,
                               .results = uint64_t(rows),
                               .count = uint64_t(x.count() / rows),
                               .shares = cuda::divBy(shares)};
            if (shares > 1) {
                TW_TRY(launch(1, rows * shares, kThreads, p));
                return shares > kWarpShares ? launch(3, rows, kThreads, p)
                                            : launch(2, blocksFor(rows * 32, kThreads), kThreads, p);
            }
            if (int64_t(p.count) >= kBlockRows)
                return launch(1, rows, kThreads, p);
            return launch(0, blocksFor(rows * 32, kThreads), kThreads, p);
        },
        [accumulatorBytes = accumulatorBytes(problem.node->attrsAs<Attrs>(), problem.inputs[0].type),
         shares = choice.shares](std::span<TensorRef const>, std::span<TensorRef const> y) {
            return shares > 1 ? y[0].count() * shares * accumulatorBytes : 0;
        });
}

} // namespace
} // namespace rows

constinit CudaTactic const kRows{"reduce_any_rows_cuda", 3, rows::generate, rows::supports, rows::configs};

} // namespace tw::ops::reduce
