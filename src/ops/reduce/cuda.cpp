// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "families/elementwise/cuda_pointwise.h"
#include "ops/reduce/cuda_arithmetic.h"
#include "ops/reduce/op.h"
#include "ops/reduce/reduce_params.h"

namespace tw::ops::reduce {

namespace {

// ---- Reductions of the innermost axes: of rows that lie together.

namespace rows {

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
                  processors = problem.target.cuda ? problem.target.cuda->multiprocessors : 1;
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

} // namespace rows

constexpr CudaTactic kRows{"reduce_any_rows_cuda", 3, rows::generate, rows::supports, rows::configs};

// ---- Reductions of short rows, whatever their length: 7x7 pixels of a channel, 64 elements of a head.

namespace short_rows {

constexpr int64_t kThreads = 256, kLeastRows = 16, kMostRows = 1024; // rows of a block are whole packs, of any type
constexpr int64_t kMostRowBytes = 1024, kMostBlockBytes = 32 * 1024;

// Elements of a row, at the most.
int64_t lengthOf(Problem const& problem)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    Extents const& x = problem.inputs[0].maxDims;
    int64_t n = 1;
    for (int d = 0; d < x.rank; ++d)
        n *= a.has(d) ? x[d] : 1;
    return n;
}

Support supports(Problem const& problem)
{
    int64_t const n = lengthOf(problem), bytes = n * sizeOf(problem.inputs[0].type);
    if (n < 2 || bytes > kMostRowBytes)
        return Support::no(fmt::format("takes rows of two elements to {} bytes", kMostRowBytes));
    return rows::supports(problem);
}

// {rows of a block}: of about 8 KiB, of twice as much
std::vector<Config> configs(Problem const& problem)
{
    int64_t const row = lengthOf(problem) * sizeOf(problem.inputs[0].type);
    std::vector<Config> list;
    for (int64_t bytes : {8 * 1024, 16 * 1024}) {
        int64_t const fit = std::max<int64_t>(bytes / std::max<int64_t>(row, 1), 1);
        Config const config{std::clamp(int64_t(std::bit_floor(uint64_t(fit))), kLeastRows, kMostRows)};
        if (list.empty() || list.back() != config)
            list.push_back(config);
    }
    return list;
}

std::unique_ptr<CudaKernels> generate(Problem const& problem, Config const& config)
{
    bool const isKnown = isConfig(config, 1, kLeastRows, kMostRows) && std::has_single_bit(uint64_t(config[0])) &&
                         config[0] * lengthOf(problem) * sizeOf(problem.inputs[0].type) <= kMostBlockBytes;
    int64_t const rows = isKnown ? config[0] : kLeastRows;
    CudaSource source = {.text = arithmeticOf(problem.node->attrsAs<Attrs>(), problem.inputs[0].type) +
                                 cuda::constant("N", lengthOf(problem)) + cuda::constant("ROWS", rows) +
                                 cuda::flag("EXACT", isStatic(problem)) +
                                 cuda::include("ops/reduce/reduce_short_rows.cuh"),
                         .names = {"reduce_short_rows_packs", "reduce_short_rows"},
                         .wide = isWide(problem),
                         .isDependent = true};
    return kernelsOf(std::move(source), [rows](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        ShortRowsParams const p{
            .x = x.data, .y = y.data, .results = uint64_t(y.count()), .count = uint64_t(x.count() / y.count())};
        bool const packs = cuda::addressOf(x.data) % 16 == 0;
        return launch(packs ? 0 : 1, blocksFor(y.count(), int(rows)), int(kThreads), p);
    });
}

} // namespace short_rows

constexpr CudaTactic kShortRows{"reduce_any_short_rows_sm80", 1, short_rows::generate, short_rows::supports,
                                short_rows::configs};

// ---- Everything else.

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
