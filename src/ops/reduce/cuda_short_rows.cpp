// SPDX-License-Identifier: Apache-2.0
#include "ops/reduce/cuda_rows.h"

#include <algorithm>
#include <bit>

#include "families/elementwise/cuda_pointwise.h"
#include "kernels/cuda/common/hopper.h"
#include "ops/reduce/cuda_arithmetic.h"

namespace tw::ops::reduce {

namespace {

constexpr int64_t kThreads = 256, kLeastRows = 16, kMostRows = 1024; // rows of a block are whole packs, of any type
constexpr int64_t kMostRowBytes = 1024, kMostBlockBytes = 32 * 1024;

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    uint64_t results = 0, count = 0;
};

// A block copies ROWS rows to shared memory, in packs wherever they begin and end, and LANES threads reduce each.
constexpr char const* kText = R"(
struct Params { $x$ const* x; $x$* y; u64 results, count; };
typedef $accumulator$ A;
constexpr int N = $n$, ROWS = $rows$, THREADS = 256, LANES = ROWS < THREADS ? THREADS / ROWS : 1, V = 16 / sizeof($x$);
constexpr bool EXACT = $exact$;
TW_INLINE A join(A a, A b) { return $join$; }
TW_INLINE $compute$ result(Params const& p, A v)
{
    A const count = A(p.count);
    (void)count;
    return $result$;
}
template <bool PACKS> TW_INLINE void reduce(Params const& p)
{
    __shared__ alignas(16) $x$ data[ROWS * N];
    waitForPrevious();
    releaseDependents();
    i64 const row0 = i64(blockIdx.x) * ROWS;
    int const n = EXACT ? N : int(p.count), rows = int(min(i64(ROWS), i64(p.results) - row0)), elements = rows * n;
    $x$ const* const x = p.x + row0 * n;
    int const packed = PACKS ? elements / V * V : 0;
    for (int k = threadIdx.x * V; k < packed; k += THREADS * V) copyAsync16(sharedAddress(data + k), x + k, true);
    copyCommit();
    for (int k = packed + threadIdx.x; k < elements; k += THREADS) data[k] = x[k];
    copyWait<0>();
    __syncthreads();
    int const lane = threadIdx.x % LANES;
    for (int r = threadIdx.x / LANES; r < ROWS; r += THREADS / LANES) {
        A v = $identity$;
        if (r < rows)
#pragma unroll 32
            for (int k = lane; k < n; k += LANES) v = join(v, A(load<$number$>(data[r * n + k])));
#pragma unroll
        for (int d = LANES / 2; d > 0; d /= 2) v = join(v, __shfl_xor_sync(0xffffffffu, v, d));
        if (lane == 0 && r < rows) p.y[row0 + r] = store<$x$>(result(p, v));
    }
}
TW_KERNEL __launch_bounds__(THREADS) reduce_short_rows_packs(const __grid_constant__ Params p) { reduce<true>(p); }
TW_KERNEL __launch_bounds__(THREADS) reduce_short_rows(const __grid_constant__ Params p) { reduce<false>(p); }
)";

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

} // namespace

Support supportsShortRows(Problem const& problem)
{
    int64_t const n = lengthOf(problem), bytes = n * sizeOf(problem.inputs[0].type);
    if (n < 2 || bytes > kMostRowBytes)
        return Support::no("takes rows of two elements to " + std::to_string(kMostRowBytes) + " bytes");
    return supportsRows(problem);
}

// {rows of a block}: of about 8 KiB, of twice as much
std::vector<Config> configsOfShortRows(Problem const& problem)
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

CudaKernels generateShortRows(Problem const& problem, Config const& config)
{
    DataType const t = problem.inputs[0].type;
    CudaArithmetic const f = cudaArithmetic(problem.node->attrsAs<Attrs>().kind, t);
    int64_t const n = lengthOf(problem);
    bool const isKnown = isConfig(config, 1, kLeastRows, kMostRows) && std::has_single_bit(uint64_t(config[0])) &&
                         config[0] * n * sizeOf(t) <= kMostBlockBytes;
    int64_t const rows = isKnown ? config[0] : kLeastRows;
    CudaKernels out;
    out.wide = isWide(problem);
    out.isDependent = true;
    out.names = {"reduce_short_rows_packs", "reduce_short_rows"};
    out.source = cuda::include("kernels/cuda/common/async_copies.cuh") + kCudaArithmetic +
                 cuda::expand(withArithmetic(kText, f, t), {{"n", std::to_string(n)},
                                                            {"rows", std::to_string(rows)},
                                                            {"exact", isStatic(problem) ? "true" : "false"}}) +
                 cuda::sizeCheck<Params>();
    out.run = [rows](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        Params p;
        p.x = x.data;
        p.y = y.data;
        p.results = uint64_t(y.count());
        p.count = uint64_t(x.count() / y.count());
        bool const packs = cuda::addressOf(x.data) % 16 == 0;
        return launch(packs ? 0 : 1, blocksFor(y.count(), int(rows)), int(kThreads), p);
    };
    return out;
}

} // namespace tw::ops::reduce
