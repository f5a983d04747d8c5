// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/softmax/cuda_columns.h"
#include "ops/softmax/cuda_short_rows.h"
#include "ops/softmax/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::softmax {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kWarpUpTo = 1024; // longer slices get a whole block

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    uint64_t slices = 0, n = 0;
    cuda::Div inner;
};

// One thread a slice where neighbours lie beside each other (inner > 1), else a warp or a block.
constexpr char const* kText = R"(
struct Params { void const* x; void* y; u64 slices, n; Div inner; };
typedef $t$ T;
TW_INLINE float larger(float a, float b) { return b > a ? b : a; }
TW_INLINE float sum(float a, float b) { return a + b; }
#define TW_LOWEST (-__int_as_float(0x7f800000))
TW_INLINE off begin(Params const& p, idx slice)
{
    idx const o = divide(slice, p.inner);
    return off(o * idx(p.n) * idx(p.inner.d) + (slice - o * idx(p.inner.d)));
}
TW_KERNEL softmax_threads(const __grid_constant__ Params p)
{
    idx const slice = threadIndex();
    if (slice >= p.slices) return;
    off const step = off(p.inner.d);
    T const* const x = static_cast<T const*>(p.x) + begin(p, slice);
    T* const y = static_cast<T*>(p.y) + begin(p, slice);
    float m = TW_LOWEST, s = 0;
    for (idx j = 0; j < p.n; ++j) m = larger(m, load<float>(x[j * step]));
    for (idx j = 0; j < p.n; ++j) s += exp(load<float>(x[j * step]) - m);
    for (idx j = 0; j < p.n; ++j) y[j * step] = store<T>(exp(load<float>(x[j * step]) - m) / s);
}
TW_KERNEL softmax_warps(const __grid_constant__ Params p)
{
    idx const slice = threadIndex() / 32;
    if (slice >= p.slices) return;
    off const step = off(p.inner.d);
    T const* const x = static_cast<T const*>(p.x) + begin(p, slice);
    T* const y = static_cast<T*>(p.y) + begin(p, slice);
    idx const lane = threadIdx.x & 31;
    float m = TW_LOWEST, s = 0;
    for (idx j = lane; j < p.n; j += 32) m = larger(m, load<float>(x[j * step]));
    m = warpReduce(m, larger);
    for (idx j = lane; j < p.n; j += 32) s += exp(load<float>(x[j * step]) - m);
    s = warpReduce(s, sum);
    for (idx j = lane; j < p.n; j += 32) y[j * step] = store<T>(exp(load<float>(x[j * step]) - m) / s);
}
TW_KERNEL softmax_blocks(const __grid_constant__ Params p)
{
    __shared__ float scratch[32];
    off const step = off(p.inner.d);
    T const* const x = static_cast<T const*>(p.x) + begin(p, blockIdx.x);
    T* const y = static_cast<T*>(p.y) + begin(p, blockIdx.x);
    float m = TW_LOWEST, s = 0;
    for (idx j = threadIdx.x; j < p.n; j += blockDim.x) m = larger(m, load<float>(x[j * step]));
    m = blockReduce(m, TW_LOWEST, scratch, larger);
    for (idx j = threadIdx.x; j < p.n; j += blockDim.x) s += exp(load<float>(x[j * step]) - m);
    s = blockReduce(s, 0.0f, scratch, sum);
    for (idx j = threadIdx.x; j < p.n; j += blockDim.x)
        y[j * step] = store<T>(exp(load<float>(x[j * step]) - m) / s);
}
)";

CudaKernels generate(Problem const& problem, Config const&)
{
    CudaKernels out;
    out.wide = isWide(problem);
    out.names = {"softmax_threads", "softmax_warps", "softmax_blocks"};
    out.source = cuda::expand(kText, {{"t", cuda::storageOf(problem.outputs[0].type)}}) + cuda::sizeCheck<Params>();
    out.run = [axis = int(problem.node->attrsAs<Attrs>().axis)](CudaLaunch const& launch,
                                                                RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        int64_t const inner = x.dims.volume(axis + 1, x.dims.rank), slices = x.dims.volume(0, axis) * inner;
        Params p;
        p.x = x.data;
        p.y = y.data;
        p.slices = uint64_t(slices);
        p.n = uint64_t(x.dims[axis]);
        p.inner = cuda::divBy(inner);
        if (inner >= 32)
            return launch(0, blocksFor(slices, kThreads), kThreads, p);
        if (x.dims[axis] <= kWarpUpTo)
            return launch(1, blocksFor(slices * 32, kThreads), kThreads, p);
        return launch(2, slices, kThreads, p);
    };
    return out;
}

// Rows that lie together (nothing behind the axis), read once: each row stays in the registers of a warp or a block.
constexpr char const* kRowsText = R"(
struct Params { void const* x; void* y; u64 slices, n; Div inner; };
typedef $t$ T;
#define TW_LOWEST (-__int_as_float(0x7f800000))
TW_INLINE float larger(float a, float b) { return b > a ? b : a; }
TW_INLINE float sum(float a, float b) { return a + b; }
template <class F> TW_INLINE float reduceRow(float v, float identity, F f)
{
#if $row$ <= 32
#pragma unroll
    for (int d = $row$ / 2; d > 0; d /= 2) v = f(v, __shfl_xor_sync(~0u, v, d));
    return v;
#else
    __shared__ float scratch[32];
    return blockReduce(v, identity, scratch, f);
#endif
}
// V elements in each of P packs a thread. EDGES: rows begin at any element; what lies before the first whole pack and
// behind the last one, fewer than V elements each, is one more for some of the threads.
template <int V, int P, bool EDGES> TW_INLINE void rows(Params const& p)
{
    releaseDependents();
    waitForPrevious();
    // Threads behind the last row do as the last one does, for all of a warp exchange, and store nothing.
    idx const wanted = blockIdx.x * ($threads$ / $row$) + threadIdx.x / $row$, slice = min(wanted, idx(p.slices) - 1);
    idx const lane = threadIdx.x % $row$, n = idx(p.n);
    T const* x = static_cast<T const*>(p.x) + i64(slice) * p.n;
    T* y = static_cast<T*>(p.y) + i64(slice) * p.n;
    idx const head = EDGES ? min(n, idx(-(i64(slice) * i64(p.n)) & (V - 1))) : 0, packs = (n - head) / V;
    idx const tail = EDGES ? n - head - packs * V : 0, behind = head + packs * V + lane;
    float v[P][V], m = TW_LOWEST, s = 0, first = TW_LOWEST, last = TW_LOWEST;
    if (EDGES && lane < head) first = load<float>(x[lane]);
    if (EDGES && lane < tail) last = load<float>(x[behind]);
    x += head;
#pragma unroll
    for (int i = 0; i < P; ++i) {
        idx const at = i * $row$ + lane;
        if (at >= packs) continue;
        Pack<T, V> const pack = reinterpret_cast<Pack<T, V> const*>(x)[at];
#pragma unroll
        for (int j = 0; j < V; ++j) { v[i][j] = load<float>(pack.v[j]); m = larger(m, v[i][j]); }
    }
    if (EDGES) m = larger(m, larger(first, last));
    m = reduceRow(m, TW_LOWEST, larger);
#pragma unroll
    for (int i = 0; i < P; ++i) {
        if (i * $row$ + lane >= packs) continue;
#pragma unroll
        for (int j = 0; j < V; ++j) { v[i][j] = $exp$(v[i][j] - m); s += v[i][j]; }
    }
    if (EDGES) { // 0 where a thread has none
        first = $exp$(first - m);
        last = $exp$(last - m);
        s += first + last;
    }
    s = 1 / reduceRow(s, 0.0f, sum);
    if (wanted != slice) return;
    if (EDGES && lane < head) y[lane] = store<T>(first * s);
    if (EDGES && lane < tail) y[behind] = store<T>(last * s);
    y += head;
#pragma unroll
    for (int i = 0; i < P; ++i) {
        idx const at = i * $row$ + lane;
        if (at >= packs) continue;
        Pack<T, V> pack;
#pragma unroll
        for (int j = 0; j < V; ++j) pack.v[j] = store<T>(v[i][j] * s);
        reinterpret_cast<Pack<T, V>*>(y)[at] = pack;
    }
}
TW_KERNEL softmax_packs(const __grid_constant__ Params p) { rows<$width$, $packs$, false>(p); }
TW_KERNEL softmax_edges(const __grid_constant__ Params p) { rows<$width$, $packs$, true>(p); }
TW_KERNEL softmax_elements(const __grid_constant__ Params p) { rows<1, $packs$ * $width$, false>(p); }
)";

constexpr int64_t kMostPacks = 4; // of a thread: 32 halves in registers

// How a row of n elements is shared out: threads for each row, packs for each thread.
struct Shares
{
    int64_t row = 1, packs = 1;
};
Shares sharesOf(int64_t n, int64_t width)
{
    // Threads of a warp: two packs each, so that loads overlap; then 128 or 512.
    Shares s;
    for (; s.row < 32 && s.row * width * 2 < n; s.row *= 2)
        ;
    for (; s.row >= 32 && s.row < 512 && s.row * width * kMostPacks < n; s.row *= 4)
        ;
    s.packs = std::max<int64_t>((n + s.row * width - 1) / (s.row * width), 1);
    return s;
}

int64_t widthOf(DataType t)
{
    return 16 / sizeOf(t);
}

Support supportsRows(Problem const& problem)
{
    TensorSpec const& x = problem.inputs[0];
    int const axis = int(problem.node->attrsAs<Attrs>().axis);
    if (x.maxDims.volume(axis + 1, x.maxDims.rank) > 1)
        return Support::no("takes the innermost axis only");
    if (sharesOf(x.maxDims[axis], widthOf(x.type)).packs > kMostPacks)
        return Support::no("takes rows of at most " + std::to_string(512 * kMostPacks * widthOf(x.type)) +
                           " elements, this one has " + std::to_string(x.maxDims[axis]));
    return Support::yes();
}

CudaKernels generateRows(Problem const& problem, Config const&)
{
    constexpr int64_t kRowThreads = 128; // of blocks that hold several rows
    TensorSpec const& x = problem.inputs[0];
    int const axis = int(problem.node->attrsAs<Attrs>().axis);
    int64_t const width = widthOf(x.type);
    Shares const s = sharesOf(x.maxDims[axis], width);
    int64_t const threads = std::max(s.row, kRowThreads);
    CudaKernels out;
    out.wide = isWide(problem);
    out.isDependent = true;
    out.names = {"softmax_packs", "softmax_edges", "softmax_elements"};
    out.source = cuda::expand(kRowsText, {{"t", cuda::storageOf(x.type)},
                                          {"row", std::to_string(s.row)},
                                          {"threads", std::to_string(threads)},
                                          {"width", std::to_string(width)},
                                          {"packs", std::to_string(s.packs)},
                                          {"exp", x.type == DataType::kHalf ? "__expf" : "exp"}}) +
                 cuda::sizeCheck<Params>();
    out.run = [axis, width, threads, row = s.row](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &in = args.inputs[0], &y = args.outputs[0];
        Params p;
        p.x = in.data;
        p.y = y.data;
        p.slices = uint64_t(in.dims.volume(0, axis));
        p.n = uint64_t(in.dims[axis]);
        bool const isAligned = (cuda::addressOf(in.data) | cuda::addressOf(y.data)) % 16 == 0;
        int const kernel = !isAligned || row < width ? 2 : in.dims[axis] % width == 0 ? 0 : 1;
        return launch(kernel, blocksFor(int64_t(p.slices), int(threads / row)), int(threads), p);
    };
    return out;
}

constexpr CudaTactic kRows{"softmax_rows_cuda", 3, generateRows, supportsRows};
constexpr CudaTactic kShortRows{"softmax_short_rows_cuda", 1, generateShortRows, supportsShortRows, configsOfShortRows};
constexpr CudaTactic kColumns{"softmax_columns_cuda", 5, generateColumns, supportsColumns, configsOfColumns};
constexpr CudaTactic kPlain{"softmax_plain_cuda", 1, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kRows, &kShortRows, &kColumns, &kPlain};
    return kList;
}

} // namespace tw::ops::softmax
