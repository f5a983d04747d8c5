// SPDX-License-Identifier: Apache-2.0
#include "ops/reduce/cuda_rows.h"

#include <algorithm>

#include "ops/reduce/cuda_arithmetic.h"
#include "ops/reduce/reduce_rows_params.h"

namespace tw::ops::reduce {

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

class Rows
{
public:
    Rows(Problem const& problem, Config const& config)
        : type_(problem.inputs[0].type), kind_(problem.node->attrsAs<Attrs>().kind)
    {
        if (!isConfig(config, 2, 1, kMostShares) || config[1] > kMostAhead)
            return;
        shares_ = config[0];
        ahead_ = config[1];
    }
    std::string source() const
    {
        return arithmeticOf(kind_, type_) + cuda::constant("PACKS_AHEAD", ahead_) +
               cuda::constant("BLOCKS", ahead_ > kMostAhead / 2 ? 4 : 6) + cuda::include("ops/reduce/reduce_rows.cuh");
    }
    bool isShared() const { return shares_ > 1; }
    int64_t workspace(int64_t rows) const { return rows * shares_ * accumulatorBytes(type_); }
    Result<void> run(CudaLaunch const& launch, RunArgs& args) const;

private:
    DataType type_;
    Kind kind_;
    int64_t shares_ = 1, ahead_ = kMostAhead / 2; // those of a damaged plan's config, too
};

Result<void> Rows::run(CudaLaunch const& launch, RunArgs& args) const
{
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    int64_t const rows = y.count();
    RowsParams p;
    p.x = x.data;
    p.y = y.data;
    p.parts = args.workspace;
    p.results = uint64_t(rows);
    p.count = uint64_t(x.count() / rows);
    p.shares = cuda::divBy(shares_);
    if (isShared()) {
        TW_TRY(launch(1, rows * shares_, kThreads, p));
        return shares_ > kWarpShares ? launch(3, rows, kThreads, p)
                                     : launch(2, blocksFor(rows * 32, kThreads), kThreads, p);
    }
    if (int64_t(p.count) >= kBlockRows)
        return launch(1, rows, kThreads, p);
    return launch(0, blocksFor(rows * 32, kThreads), kThreads, p);
}

} // namespace

Support supportsRows(Problem const& problem)
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
std::vector<Config> configsOfRows(Problem const& problem)
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

KernelBag generateRows(Problem const& problem, Config const& config)
{
    Rows const rows(problem, config);
    KernelBag out;
    out.wide = isWide(problem);
    out.isDependent = true;
    out.names = {"reduce_warps", "reduce_rows", "reduce_rows_finish", "reduce_rows_finish_many"};
    out.source = rows.source();
    if (rows.isShared())
        out.workspace = [rows](std::span<TensorRef const>, std::span<TensorRef const> y) {
            return rows.workspace(y[0].count());
        };
    out.run = [rows](CudaLaunch const& launch, RunArgs& args) { return rows.run(launch, args); };
    return out;
}

} // namespace tw::ops::reduce
