// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/cuda_tactic.h"
#include "ops/reduce/cuda_pixels.h"
#include "ops/reduce/op.h"

namespace tw::ops::reduce {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kBlockFrom = 64; // elements for each result from which a whole block works on it

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    uint64_t results = 0, count = 0;
    cuda::Loop<1> kept, reduced; // offsets in x
};

constexpr char const* kText = R"(
struct Params { void const* x; void* y; u64 results, count; Loop<1> kept, reduced; };
typedef $accumulator$ A;
TW_INLINE A join(A a, A b) { return $join$; }
TW_INLINE A element(Params const& p, off base, idx k)
{
    off at[1];
    locate<$rank$>(p.reduced, k, at);
    return A(load<$number$>(static_cast<$x$ const*>(p.x)[base + at[0]]));
}
TW_INLINE void finish(Params const& p, idx i, A v)
{
    A const count = A(p.count);
    (void)count;
    static_cast<$y$*>(p.y)[i] = store<$y$>($result$);
}
TW_KERNEL reduce_threads(const __grid_constant__ Params p)
{
    idx const i = threadIndex();
    if (i >= p.results) return;
    off base[1];
    locate<$rank$>(p.kept, i, base);
    A v = $identity$;
    for (idx k = 0; k < p.count; ++k) v = join(v, element(p, base[0], k));
    finish(p, i, v);
}
TW_KERNEL reduce_blocks(const __grid_constant__ Params p)
{
    __shared__ A scratch[32];
    idx const i = blockIdx.x;
    off base[1];
    locate<$rank$>(p.kept, i, base);
    A v = $identity$;
    for (idx k = threadIdx.x; k < p.count; k += blockDim.x) v = join(v, element(p, base[0], k));
    v = blockReduce(v, A($identity$), scratch, [](A a, A b) { return join(a, b); });
    if (threadIdx.x == 0) finish(p, i, v);
}
)";

// How numbers of a type are reduced: f32 and f16 in float, integers exactly in 64 bits.
struct Arithmetic
{
    char const *identity, *join, *result;
};

Arithmetic realArithmetic(Kind kind)
{
    switch (kind) {
    case Kind::kSum:
        return {"0", "a + b", "v"};
    case Kind::kProd:
        return {"1", "a * b", "v"};
    case Kind::kMax: // NaN wins
        return {"-__int_as_float(0x7f800000)", "a != a ? a : b != b ? b : a > b ? a : b", "v"};
    case Kind::kMin:
        return {"__int_as_float(0x7f800000)", "a != a ? a : b != b ? b : a < b ? a : b", "v"};
    case Kind::kAvg:
        return {"0", "a + b", "v / count"};
    }
    return {};
}

Arithmetic wholeArithmetic(Kind kind, bool isWide)
{
    switch (kind) {
    case Kind::kSum:
        return {"0", "a + b", isWide ? "int(v)" : "int(max(-128ll, min(127ll, v)))"};
    case Kind::kProd: // i32 wraps; i8 saturates: from 128 on it leaves the range for good, unless a 0 follows
        return isWide ? Arithmetic{"1", "i64(i32(u32(u64(a) * u64(b))))", "int(v)"}
                      : Arithmetic{"1", "max(-1000ll, min(1000ll, a * b))", "int(max(-128ll, min(127ll, v)))"};
    case Kind::kMax:
        return {isWide ? "-2147483648ll" : "-128", "max(a, b)", "int(v)"};
    case Kind::kMin:
        return {isWide ? "2147483647ll" : "127", "min(a, b)", "int(v)"};
    case Kind::kAvg:
        return {"0", "a + b",
                isWide ? "count == 0 ? 0 : int(v / count)" : "count == 0 ? -128.0 : rint(double(v) / double(count))"};
    }
    return {};
}

Result<void> run(Attrs const& a, CudaLaunch const& launch, RunArgs& args)
{
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    Extents const strides = stridesOf(x.dims);
    // Neighbours of one kind are walked as one dimension.
    Extents dims[2], along[2];
    int previous = -1;
    for (int d = 0; d < x.dims.rank; ++d) {
        int const kind = a.has(d) ? 1 : 0;
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
    Params p;
    p.x = x.data;
    p.y = y.data;
    p.results = uint64_t(y.count());
    p.count = uint64_t(dims[1].volume());
    p.kept.set(dims[0]);
    p.kept.setStrides(0, along[0]);
    p.reduced.set(dims[1]);
    p.reduced.setStrides(0, along[1]);
    if (int64_t(p.count) >= kBlockFrom)
        return launch(1, y.count(), kThreads, p);
    return launch(0, blocksFor(y.count(), kThreads), kThreads, p);
}

CudaKernels generate(Problem const& problem, Config const&)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    DataType const t = problem.inputs[0].type;
    bool const real = isFloating(t);
    Arithmetic const f = real ? realArithmetic(a.kind) : wholeArithmetic(a.kind, t == DataType::kInt32);
    CudaKernels out;
    out.wide = isWide(problem);
    out.names = {"reduce_threads", "reduce_blocks"};
    out.source = cuda::expand(kText, {{"accumulator", real ? "float" : "i64"},
                                      {"join", f.join},
                                      {"identity", f.identity},
                                      {"result", f.result},
                                      {"number", real ? "float" : "int"},
                                      {"x", cuda::storageOf(t)},
                                      {"y", cuda::storageOf(t)},
                                      {"rank", std::to_string(std::max(problem.inputs[0].dims.rank, 1))}}) +
                 cuda::sizeCheck<Params>();
    out.run = [&a](CudaLaunch const& launch, RunArgs& args) { return run(a, launch, args); };
    return out;
}

// Rows that lie together: a warp or a block for each, in packs of 16 bytes where sizes and addresses allow them.
constexpr char const* kRowsText = R"(
struct Params { void const* x; void* y; u64 results, count; Loop<1> kept, reduced; };
typedef $accumulator$ A;
TW_INLINE A join(A a, A b) { return $join$; }
TW_INLINE void finish(Params const& p, idx i, A v)
{
    A const count = A(p.count);
    (void)count;
    static_cast<$y$*>(p.y)[i] = store<$y$>($result$);
}
template <int V> TW_INLINE A part(Params const& p, idx row, idx lane, idx lanes)
{
    Pack<$x$, V> const* const x = reinterpret_cast<Pack<$x$, V> const*>(static_cast<$x$ const*>(p.x) + i64(row) * p.count);
    idx const packs = idx(p.count) / V;
    A v[V];
#pragma unroll
    for (int j = 0; j < V; ++j) v[j] = $identity$;
#pragma unroll 4
    for (idx k = lane; k < packs; k += lanes) {
        Pack<$x$, V> const pack = x[k];
#pragma unroll
        for (int j = 0; j < V; ++j) v[j] = join(v[j], A(load<$number$>(pack.v[j])));
    }
#pragma unroll
    for (int j = 1; j < V; ++j) v[0] = join(v[0], v[j]);
    return v[0];
}
template <int V> TW_INLINE void warps(Params const& p)
{
    idx const row = threadIndex() / 32;
    if (row >= p.results) return;
    A const v = warpReduce(part<V>(p, row, threadIdx.x % 32, 32), [](A a, A b) { return join(a, b); });
    if (threadIdx.x % 32 == 0) finish(p, row, v);
}
template <int V> TW_INLINE void blocks(Params const& p)
{
    __shared__ A scratch[32];
    A const v = blockReduce(part<V>(p, blockIdx.x, threadIdx.x, blockDim.x), A($identity$), scratch,
                            [](A a, A b) { return join(a, b); });
    if (threadIdx.x == 0) finish(p, blockIdx.x, v);
}
TW_KERNEL reduce_warps_packs(const __grid_constant__ Params p) { warps<$width$>(p); }
TW_KERNEL reduce_warps(const __grid_constant__ Params p) { warps<1>(p); }
TW_KERNEL reduce_rows_packs(const __grid_constant__ Params p) { blocks<$width$>(p); }
TW_KERNEL reduce_rows(const __grid_constant__ Params p) { blocks<1>(p); }
)";

constexpr int64_t kBlockRows = 2048; // elements of a row from which a block works on it

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

CudaKernels generateRows(Problem const& problem, Config const&)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    DataType const t = problem.inputs[0].type;
    bool const real = isFloating(t);
    Arithmetic const f = real ? realArithmetic(a.kind) : wholeArithmetic(a.kind, t == DataType::kInt32);
    int64_t const width = 16 / sizeOf(t);
    CudaKernels out;
    out.wide = isWide(problem);
    out.names = {"reduce_warps_packs", "reduce_warps", "reduce_rows_packs", "reduce_rows"};
    out.source = cuda::expand(kRowsText, {{"accumulator", real ? "float" : "i64"},
                                          {"join", f.join},
                                          {"identity", f.identity},
                                          {"result", f.result},
                                          {"number", real ? "float" : "int"},
                                          {"x", cuda::storageOf(t)},
                                          {"y", cuda::storageOf(t)},
                                          {"width", std::to_string(width)}}) +
                 cuda::sizeCheck<Params>();
    out.run = [width](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        Params p;
        p.x = x.data;
        p.y = y.data;
        p.results = uint64_t(y.count());
        p.count = uint64_t(x.count() / y.count());
        bool const packs = int64_t(p.count) % width == 0 && cuda::addressOf(x.data) % 16 == 0;
        if (int64_t(p.count) >= kBlockRows)
            return launch(packs ? 2 : 3, y.count(), kThreads, p);
        return launch(packs ? 0 : 1, blocksFor(y.count() * 32, kThreads), kThreads, p);
    };
    return out;
}

constexpr CudaTactic kRows{"reduce_rows_cuda", 1, generateRows, supportsRows};
// Axes with kept ones behind them, [outer, n, inner]: lanes walk along inner, 8 warps share the n; each thread has one
// pack of neighbours.
constexpr char const* kColumnsText = R"(
struct Params { void const* x; void* y; i64 outer, n, inner; Div tiles; };
typedef $accumulator$ A;
TW_INLINE A join(A a, A b) { return $join$; }
TW_INLINE $compute$ result(Params const& p, A v)
{
    A const count = A(p.n);
    (void)count;
    return $result$;
}
template <int V> TW_INLINE void columns(Params const& p)
{
    __shared__ A part[8][32 * V + 1];
    idx const outer = divide(blockIdx.x, p.tiles);
    int const lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    i64 const i0 = i64(blockIdx.x - outer * idx(p.tiles.d)) * 32 * V + lane * V;
    $x$ const* const x = static_cast<$x$ const*>(p.x) + i64(outer) * p.n * p.inner + i0;
    A v[V];
#pragma unroll
    for (int j = 0; j < V; ++j) v[j] = $identity$;
    if (i0 < p.inner) {
#pragma unroll 4
        for (i64 k = warp; k < p.n; k += 8) {
            Pack<$x$, V> const pack = *reinterpret_cast<Pack<$x$, V> const*>(x + k * p.inner);
#pragma unroll
            for (int j = 0; j < V; ++j) v[j] = join(v[j], A(load<$number$>(pack.v[j])));
        }
    }
#pragma unroll
    for (int j = 0; j < V; ++j) part[warp][lane * V + j] = v[j];
    __syncthreads();
    for (int c = threadIdx.x; c < 32 * V; c += 256) {
        A sum = part[0][c];
#pragma unroll
        for (int w = 1; w < 8; ++w) sum = join(sum, part[w][c]);
        i64 const i = i0 - lane * V + c;
        if (i < p.inner) static_cast<$x$*>(p.y)[i64(outer) * p.inner + i] = store<$x$>(result(p, sum));
    }
}
TW_KERNEL reduce_columns_packs(const __grid_constant__ Params p) { columns<$width$>(p); }
TW_KERNEL reduce_columns(const __grid_constant__ Params p) { columns<1>(p); }
)";

struct ColumnParams
{
    void const* x = nullptr;
    void* y = nullptr;
    int64_t outer = 1, n = 1, inner = 1;
    cuda::Div tiles;
};

constexpr int64_t kColumnsFrom = 32; // elements behind the reduced axes

// x as [outer, n, inner] with n reduced; false when the reduced axes do not lie together or nothing lies behind them.
bool columnsOf(Attrs const& a, Extents const& x, ColumnParams& p)
{
    int state = 0; // 0: in front of the reduced axes, 1: among them, 2: behind
    for (int d = 0; d < x.rank; ++d) {
        if (x[d] == 1)
            continue;
        if (a.has(d)) {
            if (state == 2)
                return false;
            state = 1;
            p.n *= x[d];
        } else {
            state = state == 0 ? 0 : 2;
            (state == 0 ? p.outer : p.inner) *= x[d];
        }
    }
    return state == 2;
}

Support supportsColumns(Problem const& problem)
{
    // The shapes of a run may have other dimensions of size 1, so only one shape is taken.
    ColumnParams p;
    if (!(problem.inputs[0].dims == problem.inputs[0].maxDims) ||
        !columnsOf(problem.node->attrsAs<Attrs>(), problem.inputs[0].dims, p) || p.inner < kColumnsFrom)
        return Support::no("reduces neighbouring axes with at least " + std::to_string(kColumnsFrom) +
                           " elements behind them, of a fixed shape");
    return Support::yes();
}

CudaKernels generateColumns(Problem const& problem, Config const&)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    DataType const t = problem.inputs[0].type;
    bool const real = isFloating(t);
    Arithmetic const f = real ? realArithmetic(a.kind) : wholeArithmetic(a.kind, t == DataType::kInt32);
    int64_t const width = std::min<int64_t>(16 / sizeOf(t), 8); // 64-bit sums of 16 bytes do not fit into shared memory
    CudaKernels out;
    out.wide = isWide(problem);
    out.names = {"reduce_columns_packs", "reduce_columns"};
    out.source = cuda::expand(kColumnsText, {{"accumulator", real ? "float" : "i64"},
                                             {"join", f.join},
                                             {"identity", f.identity},
                                             {"result", f.result},
                                             {"compute", real                                           ? "float"
                                                         : t == DataType::kInt8 && a.kind == Kind::kAvg ? "double"
                                                                                                        : "int"},
                                             {"number", real ? "float" : "int"},
                                             {"x", cuda::storageOf(t)},
                                             {"width", std::to_string(width)}}) +
                 cuda::sizeCheck<ColumnParams>();
    out.run = [&a, width](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        ColumnParams p;
        if (!columnsOf(a, x.dims, p))
            return internalError("a reduction of columns runs on another shape than it was built for");
        p.x = x.data;
        p.y = y.data;
        bool const packs = p.inner % width == 0 && cuda::addressOf(x.data) % uint64_t(width * sizeOf(x.type)) == 0;
        int64_t const tiles = blocksFor(p.inner, int(packs ? 32 * width : 32));
        p.tiles = cuda::divBy(tiles);
        return launch(packs ? 0 : 1, p.outer * tiles, kThreads, p);
    };
    return out;
}

constexpr CudaTactic kPixels{"reduce_f16_pixels", 1, generatePixels, supportsPixels, configsOfPixels, formatsOfPixels};
constexpr CudaTactic kPixels32{"reduce_f32_pixels", 1, generatePixels, supportsPixels32, configsOfPixels,
                               formatsOfPixels};
constexpr CudaTactic kColumns{"reduce_columns_cuda", 1, generateColumns, supportsColumns};
constexpr CudaTactic kPlain{"reduce_plain_cuda", 1, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kPixels, &kPixels32, &kRows, &kColumns, &kPlain};
    return kList;
}

} // namespace tw::ops::reduce
