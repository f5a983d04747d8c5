// SPDX-License-Identifier: Apache-2.0
#include "ops/reduce/cuda_columns.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "ops/reduce/cuda_arithmetic.h"

namespace tw::ops::reduce {

namespace {

constexpr int kThreads = 256;
constexpr int kPlainLanes = 32, kFinishLanes = 8;
constexpr int64_t kMostLanes = 256, kMostAhead = 16, kMostShares = 1024;

// x as [outer, n, inner] with n reduced.
struct Columns
{
    int64_t outer = 1, n = 1, inner = 1;
};

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    void* parts = nullptr; // [shares, columns], of accumulators; null: there is one share
    int64_t count = 0, n = 0, inner = 0;
    uint64_t packs = 0, columns = 0; // of all outer matrices in a row
    cuda::Div packsOfRow, shares;
};

// A block has X packs of V neighbouring columns and Y of the rows at a time, AHEAD times as many on their way. `shares`
// blocks share the rows of a pack; the same kernel adds up what each of them left. WHOLE: a block has all columns of a
// matrix, FOLD rows of it side by side. The order of all sums is fixed.
constexpr char const* kText = R"(
typedef $accumulator$ A;
struct Params { void const* x; $x$* y; A* parts; i64 count, n, inner; u64 packs, columns; Div packsOfRow, shares; };
constexpr int THREADS = 256, AHEAD = $ahead$;
// Blocks of a multiprocessor: else the compiler saves registers and waits for every fourth load.
constexpr int RESIDENT = sizeof(A) > 4 ? 1 : $resident$;
TW_INLINE A join(A a, A b) { return $join$; }
TW_INLINE $compute$ result(Params const& p, A v)
{
    A const count = A(p.count);
    (void)count;
    return $result$;
}
template <class In> struct Read { static TW_INLINE A from(In v) { return A(load<$number$>(v)); } };
template <> struct Read<i64> { static TW_INLINE A from(i64 v) { return A(v); } };
template <class In, int V, int X, bool WHOLE, int FOLD> TW_INLINE void columns(Params const& p)
{
    constexpr int Y = THREADS / X, GROUPS = X < 32 && !WHOLE ? THREADS / 32 : Y, ALL = X * V;
    __shared__ alignas(16) A part[GROUPS][ALL];
    waitForPrevious();
    releaseDependents();
    int const cx = threadIdx.x % X, cy = threadIdx.x / X;
    idx const tile = divide(blockIdx.x, p.shares), share = blockIdx.x - tile * idx(p.shares.d), pack = tile * X + cx;
    bool const takesPart = THREADS % X == 0 || cy < Y;
    A v[V];
#pragma unroll
    for (int j = 0; j < V; ++j) v[j] = $identity$;
    if (pack < p.packs && takesPart) {
        idx const o = divide(pack, p.packsOfRow);
        int const first = int(p.n * share / p.shares.d), last = int(p.n * (share + 1) / p.shares.d);
        i64 const step = Y * p.inner;
        In const* x = static_cast<In const*>(p.x) + i64(o) * p.n * p.inner + i64(pack - o * idx(p.packsOfRow.d)) * V +
                      i64(first + cy) * p.inner;
        int k = first + cy;
        for (; k + (AHEAD - 1) * Y < last; k += AHEAD * Y, x += AHEAD * step) {
            Pack<In, V> u[AHEAD];
#pragma unroll
            for (int a = 0; a < AHEAD; ++a) u[a] = *reinterpret_cast<Pack<In, V> const*>(x + a * step);
#pragma unroll
            for (int a = 0; a < AHEAD; ++a)
#pragma unroll
                for (int j = 0; j < V; ++j) v[j] = join(v[j], Read<In>::from(u[a].v[j]));
        }
        if (k < last) {
            Pack<In, V> u[AHEAD - 1];
#pragma unroll
            for (int a = 0; a < AHEAD - 1; ++a)
                if (k + a * Y < last) u[a] = *reinterpret_cast<Pack<In, V> const*>(x + a * step);
#pragma unroll
            for (int a = 0; a < AHEAD - 1; ++a)
                if (k + a * Y < last)
#pragma unroll
                    for (int j = 0; j < V; ++j) v[j] = join(v[j], Read<In>::from(u[a].v[j]));
        }
    }
    if (!WHOLE)
#pragma unroll
        for (int d = X; d < 32; d *= 2)
#pragma unroll
            for (int j = 0; j < V; ++j) v[j] = join(v[j], __shfl_xor_sync(0xffffffffu, v[j], d));
    if (takesPart && (WHOLE || X >= 32 || threadIdx.x % 32 < X))
#pragma unroll
        for (int j = 0; j < V; ++j) part[X < 32 && !WHOLE ? threadIdx.x / 32 : cy][cx * V + j] = v[j];
    __syncthreads();
    auto give = [&](i64 column, A sum) {
        if (p.parts) p.parts[i64(share) * p.columns + column] = sum;
        else p.y[column] = store<$x$>(result(p, sum));
    };
    if constexpr (WHOLE) { // [Y, FOLD, INNER] in shared memory
        constexpr int INNER = ALL / FOLD, ROWS = Y * FOLD;
        A const* const rows = &part[0][0];
        if constexpr (ROWS >= 32) {
            for (int c = threadIdx.x / 32; c < INNER; c += THREADS / 32) {
                A sum = $identity$;
                for (int r = threadIdx.x % 32; r < ROWS; r += 32) sum = join(sum, rows[r * INNER + c]);
                sum = warpReduce(sum, [](A a, A b) { return join(a, b); });
                if (threadIdx.x % 32 == 0) give(i64(tile) * INNER + c, sum);
            }
        } else {
            for (int c = threadIdx.x; c < INNER; c += THREADS) {
                A sum = rows[c];
#pragma unroll
                for (int r = 1; r < ROWS; ++r) sum = join(sum, rows[r * INNER + c]);
                give(i64(tile) * INNER + c, sum);
            }
        }
    } else {
        for (int c = threadIdx.x; c < ALL; c += THREADS) {
            A sum = part[0][c];
#pragma unroll
            for (int g = 1; g < GROUPS; ++g) sum = join(sum, part[g][c]);
            if (i64(tile) * ALL + c < p.columns) give(i64(tile) * ALL + c, sum);
        }
    }
}
#define TW_COLUMNS TW_KERNEL __launch_bounds__(THREADS, RESIDENT)
TW_COLUMNS reduce_columns_packs(const __grid_constant__ Params p) { columns<$x$, $width$, $lanes$, $whole$, $fold$>(p); }
TW_COLUMNS reduce_columns(const __grid_constant__ Params p) { columns<$x$, 1, 32, false, 1>(p); }
TW_COLUMNS reduce_columns_finish(const __grid_constant__ Params p) { columns<A, 1, 8, false, 1>(p); }
)";

// The first of the reduced axes and the one behind the last; axes of size 1 at the most are left out.
struct Axes
{
    int begin = 0, end = 0;

    Columns of(Extents const& x) const { return {x.volume(0, begin), x.volume(begin, end), x.volume(end, x.rank)}; }
};

// False when the reduced axes do not lie together or nothing lies behind them. `x`: the largest dimensions.
bool axesOf(Attrs const& a, Extents const& x, Axes& axes)
{
    bool any = false, behind = false;
    for (int d = 0; d < x.rank; ++d) {
        if (x[d] == 1)
            continue;
        if (!a.has(d)) {
            behind = behind || any;
            continue;
        }
        if (behind)
            return false;
        axes.begin = any ? axes.begin : d;
        axes.end = d + 1;
        any = true;
    }
    return behind;
}

// How columns become packs: `fold` rows lie side by side as one, so that rows end with packs.
struct Packing
{
    int64_t width = 1, fold = 1;
};

// `folds`: rows may be folded.
Packing packingOf(Columns const& c, DataType t, bool folds)
{
    // Accumulators of 64 bits for 16 bytes of i8 would not fit into shared memory.
    for (int64_t width = std::min<int64_t>(16 / sizeOf(t), 8); width > 1; width /= 2) {
        int64_t const fold = width / std::gcd(c.inner, width);
        if (c.n % fold == 0 && (fold == 1 || folds))
            return {width, fold};
    }
    return {};
}

int64_t packsOfRow(Columns const& c, Packing const& packing)
{
    return std::max<int64_t>(c.inner * packing.fold / packing.width, 1);
}

// Numbers of a config.
struct Choice
{
    int64_t lanes = 32, ahead = 8, shares = 1;
    bool isWhole = false; // lanes: the packs of a row
};

// Blocks of a multiprocessor, with 96 to 128 KiB on their way: as many as registers allow.
int64_t residentOf(int64_t ahead)
{
    return std::min<int64_t>(32 / ahead, 6);
}

// Without whole matrices the sums of shares and those of folded rows are added up at once, as rows of one matrix.
bool mayFold(Columns const& c, Choice const& choice)
{
    return choice.isWhole || choice.shares == 1 || c.outer == 1;
}

// The plainest one for the config of a damaged plan.
Choice choiceOf(Config const& config, Columns const& c, DataType t)
{
    if (!isConfig(config, 4, 0, kMostShares))
        return {};
    Choice const choice{config[0], config[1], config[2], config[3] == 1};
    auto isPower = [](int64_t v) { return std::has_single_bit(uint64_t(v)); };
    bool const isKnown =
        choice.lanes >= 1 && choice.lanes <= kMostLanes && isPower(choice.ahead) && choice.ahead >= 2 &&
        choice.ahead <= kMostAhead && choice.shares >= 1 &&
        (choice.isWhole ? choice.lanes == packsOfRow(c, packingOf(c, t, true)) : isPower(choice.lanes));
    return isKnown ? choice : Choice{};
}

} // namespace

Support supportsColumns(Problem const& problem)
{
    Axes axes;
    if (!axesOf(problem.node->attrsAs<Attrs>(), problem.inputs[0].maxDims, axes))
        return Support::no("reduces neighbouring axes with others behind them");
    if (axes.of(problem.inputs[0].maxDims).n > INT32_MAX / 2)
        return Support::no("counts rows in 32 bits");
    return Support::yes();
}

// {lanes along the columns, packs ahead, blocks that share rows, whether a block has whole matrices}
std::vector<Config> configsOfColumns(Problem const& problem)
{
    Axes axes;
    axesOf(problem.node->attrsAs<Attrs>(), problem.inputs[0].maxDims, axes);
    Columns const c = axes.of(problem.inputs[0].dims);
    Packing const packing = packingOf(c, problem.inputs[0].type, true);
    int64_t const width = packsOfRow(c, packing), rows = c.n / packing.fold,
                  processors = problem.cuda ? problem.cuda->multiprocessors : 1;
    std::vector<Config> list;
    auto add = [&](int64_t lanes, int64_t ahead, bool isWhole) {
        int64_t const tiles = std::max<int64_t>(isWhole ? c.outer : (c.outer * width + lanes - 1) / lanes, 1),
                      most = std::min(kMostShares, rows / (kThreads / lanes * ahead)),
                      shares = std::max<int64_t>(std::min(processors * residentOf(ahead) / tiles, most), 1);
        Choice const choice{lanes, ahead, shares, isWhole};
        Config const config{lanes, ahead, mayFold(c, choice) || packing.fold == 1 ? shares : 1, isWhole ? 1 : 0};
        if (std::find(list.begin(), list.end(), config) == list.end())
            list.push_back(config);
    };
    bool const fitsBlocks = width <= kMostLanes && width * (kThreads / width) >= kThreads * 7 / 8;
    if (fitsBlocks && rows * width >= kThreads) {
        add(width, 8, true);
        add(width, 16, true);
    }
    if (rows < kThreads / 32) { // a thread for each pack of columns
        add(256, 4, false);
        add(256, 8, false);
    } else {
        add(32, 4, false);
        add(32, 16, false);
        add(32, 8, false);
        add(64, 16, false);
    }
    return list;
}

CudaKernels generateColumns(Problem const& problem, Config const& config)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    DataType const t = problem.inputs[0].type;
    CudaArithmetic const f = cudaArithmetic(a.kind, t);
    Axes axes;
    axesOf(a, problem.inputs[0].maxDims, axes);
    Columns const optimum = axes.of(problem.inputs[0].dims);
    Choice const choice = choiceOf(config, optimum, t);
    Packing const packing = packingOf(optimum, t, mayFold(optimum, choice));
    // Of each column, what the first kernel leaves.
    int64_t const folded = choice.isWhole ? 1 : packing.fold, sums = choice.shares * folded,
                  accumulatorBytes = isFloating(t) ? 4 : 8;
    CudaKernels out;
    out.wide = isWide(problem);
    out.isDependent = true;
    out.names = {"reduce_columns_packs", "reduce_columns", "reduce_columns_finish"};
    out.source = kCudaArithmetic +
                 cuda::expand(withArithmetic(kText, f, t), {{"width", std::to_string(packing.width)},
                                                            {"lanes", std::to_string(choice.lanes)},
                                                            {"whole", choice.isWhole ? "true" : "false"},
                                                            {"fold", std::to_string(packing.fold)},
                                                            {"resident", std::to_string(residentOf(choice.ahead))},
                                                            {"ahead", std::to_string(choice.ahead)}}) +
                 cuda::sizeCheck<Params>();
    if (sums > 1)
        out.workspace = [sums, accumulatorBytes](std::span<TensorRef const>, std::span<TensorRef const> y) {
            return y[0].count() * sums * accumulatorBytes;
        };
    out.run = [axes, packing, choice, folded](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const& x = args.inputs[0];
        Columns const c = axes.of(x.dims);
        bool const isPacked = cuda::addressOf(x.data) % uint64_t(packing.width * sizeOf(x.type)) == 0 &&
                              c.n % packing.fold == 0 && c.inner * packing.fold % packing.width == 0 &&
                              (packing.fold == 1 || mayFold(c, choice)) &&
                              (!choice.isWhole || choice.lanes == packsOfRow(c, packing));
        Packing const by = isPacked ? packing : Packing{};
        int64_t const lanes = isPacked ? choice.lanes : kPlainLanes, sums = choice.shares * (isPacked ? folded : 1);
        Params p;
        // The first kernel leaves `each` sums for each column.
        auto walk = [&](int64_t n, int64_t inner, int64_t outer, int64_t width, int64_t each) {
            p.n = n;
            p.inner = inner;
            p.packs = uint64_t(outer * inner / width);
            p.columns = uint64_t(c.outer * c.inner * each);
            p.packsOfRow = cuda::divBy(inner / width);
        };
        walk(c.n / by.fold, c.inner * by.fold, c.outer, by.width, isPacked ? folded : 1);
        p.x = x.data;
        p.y = args.outputs[0].data;
        p.parts = sums > 1 ? args.workspace : nullptr;
        p.count = c.n;
        p.shares = cuda::divBy(choice.shares);
        TW_TRY(launch(isPacked ? 0 : 1, blocksFor(int64_t(p.packs), int(lanes)) * choice.shares, kThreads, p));
        if (!p.parts)
            return {};
        // What shares left are the rows of one matrix; folded rows alone are those of as many as there were.
        walk(sums, choice.shares > 1 ? c.outer * c.inner : c.inner, choice.shares > 1 ? 1 : c.outer, 1, 1);
        p.x = p.parts;
        p.parts = nullptr;
        p.shares = cuda::divBy(1);
        return launch(2, blocksFor(int64_t(p.packs), kFinishLanes), kThreads, p);
    };
    return out;
}

} // namespace tw::ops::reduce
