// SPDX-License-Identifier: Apache-2.0
#include "ops/reduce/cuda_rows.h"

#include <algorithm>

#include "ops/reduce/cuda_arithmetic.h"

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

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    void* parts = nullptr; // [results, shares], of accumulators
    uint64_t results = 0, count = 0;
    cuda::Div shares;
};

// A warp or a block for each row, or several blocks and then a warp for what they leave. Rows may begin at any element:
// before the first whole pack and behind the last one lie fewer than V elements each.
constexpr char const* kText = R"(
struct Params { $x$ const* x; $x$* y; void* parts; u64 results, count; Div shares; };
typedef $accumulator$ A;
// Packs of a row that a lane loads before it uses the first; blocks of a multiprocessor.
constexpr int V = 16 / sizeof($x$), AHEAD = sizeof(A) > 4 ? 2 : $ahead$, RESIDENT = sizeof(A) > 4 ? 1 : $resident$;
TW_INLINE A join(A a, A b) { return $join$; }
TW_INLINE void finish(Params const& p, idx i, A v)
{
    A const count = A(p.count);
    (void)count;
    p.y[i] = store<$x$>($result$);
}
TW_INLINE A part($x$ const* first, i64 n, idx lane, idx lanes)
{
    i64 const aligned = -i64(u64(first) / sizeof($x$)) & (V - 1), head = aligned < n ? aligned : n;
    Pack<$x$, V> const* const x = reinterpret_cast<Pack<$x$, V> const*>(first + head);
    idx const packs = idx(n - head) / V, behind = idx(head) + packs * V;
    A v[V];
#pragma unroll
    for (int j = 0; j < V; ++j) v[j] = $identity$;
    if (lane < head) v[0] = A(load<$number$>(first[lane]));
    if (behind + lane < n) v[1] = A(load<$number$>(first[behind + lane]));
    for (idx k = lane; k < packs; k += AHEAD * lanes) {
        Pack<$x$, V> ahead[AHEAD];
#pragma unroll
        for (int a = 0; a < AHEAD; ++a)
            if (k + a * lanes < packs) ahead[a] = x[k + a * lanes];
#pragma unroll
        for (int a = 0; a < AHEAD; ++a)
            if (k + a * lanes < packs)
#pragma unroll
                for (int j = 0; j < V; ++j) v[j] = join(v[j], A(load<$number$>(ahead[a].v[j])));
    }
#pragma unroll
    for (int j = 1; j < V; ++j) v[0] = join(v[0], v[j]);
    return v[0];
}
TW_INLINE A joinWarp(A v) { return warpReduce(v, [](A a, A b) { return join(a, b); }); }
TW_KERNEL __launch_bounds__(256, RESIDENT) reduce_warps(const __grid_constant__ Params p)
{
    waitForPrevious();
    releaseDependents();
    idx const row = threadIndex() / 32;
    if (row >= p.results) return;
    A const v = joinWarp(part(p.x + i64(row) * p.count, p.count, threadIdx.x % 32, 32));
    if (threadIdx.x % 32 == 0) finish(p, row, v);
}
TW_KERNEL __launch_bounds__(256, RESIDENT) reduce_rows(const __grid_constant__ Params p)
{
    __shared__ A scratch[32];
    waitForPrevious();
    releaseDependents();
    idx const row = divide(blockIdx.x, p.shares), share = blockIdx.x - row * idx(p.shares.d);
    i64 const begin = i64(p.count * share / p.shares.d), end = i64(p.count * (share + 1) / p.shares.d);
    A const v = blockReduce(part(p.x + i64(row) * p.count + begin, end - begin, threadIdx.x, blockDim.x),
                            A($identity$), scratch, [](A a, A b) { return join(a, b); });
    if (threadIdx.x != 0) return;
    if (p.shares.d == 1) finish(p, row, v);
    else static_cast<A*>(p.parts)[blockIdx.x] = v;
}
TW_KERNEL __launch_bounds__(256) reduce_rows_finish(const __grid_constant__ Params p)
{
    waitForPrevious();
    releaseDependents();
    idx const row = threadIndex() / 32;
    if (row >= p.results) return;
    A v = $identity$;
    for (idx k = threadIdx.x % 32; k < p.shares.d; k += 32) v = join(v, static_cast<A const*>(p.parts)[row * p.shares.d + k]);
    v = joinWarp(v);
    if (threadIdx.x % 32 == 0) finish(p, row, v);
}
// As reduce_rows_finish, by a block for each row.
TW_KERNEL __launch_bounds__(256) reduce_rows_finish_many(const __grid_constant__ Params p)
{
    __shared__ A scratch[32];
    waitForPrevious();
    releaseDependents();
    A const* const parts = static_cast<A const*>(p.parts) + u64(blockIdx.x) * p.shares.d;
    A v = $identity$;
#pragma unroll 4
    for (idx k = threadIdx.x; k < p.shares.d; k += 256) v = join(v, parts[k]);
    v = blockReduce(v, A($identity$), scratch, [](A a, A b) { return join(a, b); });
    if (threadIdx.x == 0) finish(p, blockIdx.x, v);
}
)";

} // namespace

Support supportsRows(Problem const& problem)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    Extents const& x = problem.inputs[0].maxDims;
    bool inner = true; // only axes behind the kept ones
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

CudaKernels generateRows(Problem const& problem, Config const& config)
{
    DataType const t = problem.inputs[0].type;
    CudaArithmetic const f = cudaArithmetic(problem.node->attrsAs<Attrs>().kind, t);
    bool const isKnown = isConfig(config, 2, 1, kMostShares) && config[1] <= kMostAhead;
    int64_t const shares = isKnown ? config[0] : 1, ahead = isKnown ? config[1] : kMostAhead / 2,
                  accumulatorBytes = isFloating(t) ? 4 : 8;
    CudaKernels out;
    out.wide = isWide(problem);
    out.isDependent = true;
    out.names = {"reduce_warps", "reduce_rows", "reduce_rows_finish", "reduce_rows_finish_many"};
    out.source = kCudaArithmetic +
                 cuda::expand(withArithmetic(kText, f, t),
                              {{"ahead", std::to_string(ahead)}, {"resident", ahead > 4 ? "4" : "6"}}) +
                 cuda::sizeCheck<Params>();
    if (shares > 1)
        out.workspace = [shares, accumulatorBytes](std::span<TensorRef const>, std::span<TensorRef const> y) {
            return y[0].count() * shares * accumulatorBytes;
        };
    out.run = [shares](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        int64_t const rows = y.count();
        Params p;
        p.x = x.data;
        p.y = y.data;
        p.parts = args.workspace;
        p.results = uint64_t(rows);
        p.count = uint64_t(x.count() / rows);
        p.shares = cuda::divBy(shares);
        if (shares > 1) {
            TW_TRY(launch(1, rows * shares, kThreads, p));
            return shares > kWarpShares ? launch(3, rows, kThreads, p)
                                        : launch(2, blocksFor(rows * 32, kThreads), kThreads, p);
        }
        if (int64_t(p.count) >= kBlockRows)
            return launch(1, rows, kThreads, p);
        return launch(0, blocksFor(rows * 32, kThreads), kThreads, p);
    };
    return out;
}

} // namespace tw::ops::reduce
