// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/cuda_tactic.h"
#include "ops/layer_norm/op.h"

namespace tw::ops::layer_norm {

namespace {

constexpr int kThreads = 256;

struct Params
{
    void const *x = nullptr, *gamma = nullptr, *beta = nullptr;
    void* y = nullptr;
    uint64_t rows = 0, n = 0;
};

constexpr char const* kCommon = R"(
struct Params { void const *x, *gamma, *beta; void* y; u64 rows, n; };
typedef $t$ T;
TW_INLINE float sum(float a, float b) { return a + b; }
)";

// A block for each row, which it reads three times.
constexpr char const* kText = R"(
TW_KERNEL layer_norm(const __grid_constant__ Params p)
{
    __shared__ float scratch[32];
    T const* const x = static_cast<T const*>(p.x) + i64(blockIdx.x) * p.n;
    T* const y = static_cast<T*>(p.y) + i64(blockIdx.x) * p.n;
    float mean = 0, variance = 0;
    for (idx i = threadIdx.x; i < p.n; i += blockDim.x) mean += load<float>(x[i]);
    mean = blockReduce(mean, 0.0f, scratch, sum) / float(p.n);
    for (idx i = threadIdx.x; i < p.n; i += blockDim.x) {
        float const v = load<float>(x[i]) - mean;
        variance += v * v;
    }
    float const deviation = sqrt(blockReduce(variance, 0.0f, scratch, sum) / float(p.n) + $epsilon$);
    for (idx i = threadIdx.x; i < p.n; i += blockDim.x) {
        float const gamma = p.gamma ? load<float>(static_cast<T const*>(p.gamma)[i]) : 1;
        float const beta = p.beta ? load<float>(static_cast<T const*>(p.beta)[i]) : 0;
        y[i] = store<T>((load<float>(x[i]) - mean) / deviation * gamma + beta);
    }
}
)";

// The same with the row in registers: V elements in each of P packs a thread.
constexpr char const* kRowsText = R"(
template <int V> TW_INLINE void fetch(void const* base, idx at, float (&v)[V], float missing)
{
    if (base) {
        Pack<T, V> const pack = static_cast<Pack<T, V> const*>(base)[at];
#pragma unroll
        for (int j = 0; j < V; ++j) v[j] = load<float>(pack.v[j]);
    } else {
#pragma unroll
        for (int j = 0; j < V; ++j) v[j] = missing;
    }
}
TW_INLINE float total(float v)
{
#if $row$ == 32
    return warpReduce(v, sum);
#else
    __shared__ float scratch[32];
    return blockReduce(v, 0.0f, scratch, sum);
#endif
}
template <int V, int P> TW_INLINE void rows(Params const& p)
{
    idx const row = blockIdx.x * ($threads$ / $row$) + threadIdx.x / $row$;
    if (row >= p.rows) return; // whole warps
    idx const lane = threadIdx.x % $row$, packs = idx(p.n) / V;
    T const* const x = static_cast<T const*>(p.x) + i64(row) * p.n;
    T* const y = static_cast<T*>(p.y) + i64(row) * p.n;
    float v[P][V], mean = 0, variance = 0;
#pragma unroll
    for (int i = 0; i < P; ++i) {
        if (i * $row$ + lane >= packs) continue;
        fetch<V>(x, i * $row$ + lane, v[i], 0);
#pragma unroll
        for (int j = 0; j < V; ++j) mean += v[i][j];
    }
    mean = total(mean) / float(p.n);
#pragma unroll
    for (int i = 0; i < P; ++i) {
        if (i * $row$ + lane >= packs) continue;
#pragma unroll
        for (int j = 0; j < V; ++j) { v[i][j] -= mean; variance += v[i][j] * v[i][j]; }
    }
    float const scale = 1 / sqrt(total(variance) / float(p.n) + $epsilon$);
#pragma unroll
    for (int i = 0; i < P; ++i) {
        idx const at = i * $row$ + lane;
        if (at >= packs) continue;
        float gamma[V], beta[V];
        fetch<V>(p.gamma, at, gamma, 1);
        fetch<V>(p.beta, at, beta, 0);
        Pack<T, V> pack;
#pragma unroll
        for (int j = 0; j < V; ++j) pack.v[j] = store<T>(v[i][j] * scale * gamma[j] + beta[j]);
        reinterpret_cast<Pack<T, V>*>(y)[at] = pack;
    }
}
TW_KERNEL layer_norm_packs(const __grid_constant__ Params p) { rows<$width$, $packs$>(p); }
TW_KERNEL layer_norm_elements(const __grid_constant__ Params p) { rows<1, $packs$ * $width$>(p); }
)";

Params paramsOf(Attrs const& a, RunArgs const& args)
{
    TensorRef const &x = args.inputs[0], &y = args.outputs[0];
    Params p;
    p.x = x.data;
    p.y = y.data;
    p.gamma = a.hasGamma ? args.inputs[size_t(a.gammaInput())].data : nullptr;
    p.beta = a.hasBeta ? args.inputs[size_t(a.betaInput())].data : nullptr;
    p.rows = uint64_t(x.dims.volume(0, int(a.axis)));
    p.n = uint64_t(x.dims.volume(int(a.axis), x.dims.rank));
    return p;
}

CudaKernels generate(Problem const& problem, Config const&)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    CudaKernels out;
    out.wide = isWide(problem);
    out.names = {"layer_norm"};
    out.source = cuda::expand(std::string(kCommon) + kText, {{"t", cuda::storageOf(problem.outputs[0].type)},
                                                             {"epsilon", cuda::literal(float(a.epsilon))}}) +
                 cuda::sizeCheck<Params>();
    out.run = [&a](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        Params const p = paramsOf(a, args);
        return launch(0, int64_t(p.rows), kThreads, p);
    };
    return out;
}

constexpr int64_t kMostPacks = 4; // of a thread: 32 halves in registers

// Threads for a row of n elements: 32, 128 or 512.
int64_t rowThreads(int64_t n, int64_t width)
{
    int64_t row = 32;
    while (row < 512 && row * width * kMostPacks < n)
        row *= 4;
    return row;
}

int64_t longestRow(Problem const& problem)
{
    Extents const& x = problem.inputs[0].maxDims;
    return x.volume(int(problem.node->attrsAs<Attrs>().axis), x.rank);
}

Support supportsRows(Problem const& problem)
{
    int64_t const most = 512 * kMostPacks * (16 / sizeOf(problem.inputs[0].type)), n = longestRow(problem);
    if (n > most)
        return Support::no("takes rows of at most " + std::to_string(most) + " elements, this one has " +
                           std::to_string(n));
    return Support::yes();
}

CudaKernels generateRows(Problem const& problem, Config const&)
{
    constexpr int64_t kSmallRows = 128; // threads of blocks that hold several rows
    auto const& a = problem.node->attrsAs<Attrs>();
    int64_t const width = 16 / sizeOf(problem.inputs[0].type), n = longestRow(problem), row = rowThreads(n, width);
    int64_t const threads = std::max(row, kSmallRows),
                  packs = std::max<int64_t>((n + row * width - 1) / (row * width), 1);
    CudaKernels out;
    out.wide = isWide(problem);
    out.names = {"layer_norm_packs", "layer_norm_elements"};
    out.source = cuda::expand(std::string(kCommon) + kRowsText, {{"t", cuda::storageOf(problem.outputs[0].type)},
                                                                 {"epsilon", cuda::literal(float(a.epsilon))},
                                                                 {"row", std::to_string(row)},
                                                                 {"threads", std::to_string(threads)},
                                                                 {"width", std::to_string(width)},
                                                                 {"packs", std::to_string(packs)}}) +
                 cuda::sizeCheck<Params>();
    out.run = [&a, width, row, threads](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        Params const p = paramsOf(a, args);
        uint64_t const all =
            cuda::addressOf(p.x) | cuda::addressOf(p.y) | cuda::addressOf(p.gamma) | cuda::addressOf(p.beta);
        bool const aligned = int64_t(p.n) % width == 0 && all % 16 == 0;
        return launch(aligned ? 0 : 1, blocksFor(int64_t(p.rows), int(threads / row)), int(threads), p);
    };
    return out;
}

constexpr CudaTactic kPlain{"layer_norm_plain_cuda", 1, generate};
constexpr CudaTactic kRows{"layer_norm_rows_cuda", 1, generateRows, supportsRows};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kRows, &kPlain};
    return kList;
}

} // namespace tw::ops::layer_norm
