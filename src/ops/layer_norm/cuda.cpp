// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/layer_norm/cuda_chunks.h"
#include "ops/layer_norm/op.h"
#include "tactic/cuda_tactic.h"

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

// The same with the row in registers: V elements in each of P packs a thread. Gamma and beta that no kernel writes are
// read before the kernel in front has ended.
constexpr char const* kRowsText = R"(
TW_INLINE float total(float v)
{
#if $row$ == 32
    return warpReduce(v, sum);
#else
    __shared__ float scratch[32];
    return blockReduce(v, 0.0f, scratch, sum);
#endif
}
template <int V, int P> TW_INLINE void fetch(void const* base, idx lane, idx packs, Pack<T, V> (&to)[P])
{
#pragma unroll
    for (int i = 0; i < P; ++i)
        if (i * $row$ + lane < packs) to[i] = static_cast<Pack<T, V> const*>(base)[i * $row$ + lane];
}
template <int V, int P> TW_INLINE void rows(Params const& p)
{
    idx const row = blockIdx.x * ($threads$ / $row$) + threadIdx.x / $row$;
    idx const lane = threadIdx.x % $row$, packs = idx(p.n) / V;
    Pack<T, V> gamma[P], beta[P], x[P];
    auto weights = [&] {
        if ($gamma$) fetch(p.gamma, lane, packs, gamma);
        if ($beta$) fetch(p.beta, lane, packs, beta);
    };
    releaseDependents();
    if ($early$) weights();
    waitForPrevious();
    if (row >= p.rows) return; // whole warps
    fetch(static_cast<T const*>(p.x) + i64(row) * p.n, lane, packs, x);
    if (!$early$) weights();
    float v[P][V], mean = 0, variance = 0;
#pragma unroll
    for (int i = 0; i < P; ++i) {
        if (i * $row$ + lane >= packs) continue;
#pragma unroll
        for (int j = 0; j < V; ++j) { v[i][j] = load<float>(x[i].v[j]); mean += v[i][j]; }
    }
    mean = total(mean) / float(p.n);
#pragma unroll
    for (int i = 0; i < P; ++i) {
        if (i * $row$ + lane >= packs) continue;
#pragma unroll
        for (int j = 0; j < V; ++j) { v[i][j] -= mean; variance += v[i][j] * v[i][j]; }
    }
    float const scale = 1 / sqrt(total(variance) / float(p.n) + $epsilon$);
    T* const y = static_cast<T*>(p.y) + i64(row) * p.n;
#pragma unroll
    for (int i = 0; i < P; ++i) {
        idx const at = i * $row$ + lane;
        if (at >= packs) continue;
        Pack<T, V> pack;
#pragma unroll
        for (int j = 0; j < V; ++j) {
            float const g = $gamma$ ? load<float>(gamma[i].v[j]) : 1, b = $beta$ ? load<float>(beta[i].v[j]) : 0;
            pack.v[j] = store<T>(v[i][j] * scale * g + b);
        }
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
constexpr int64_t kRowThreads[] = {32, 128, 512};

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

// {threads for a row, threads of a block}: the fewest threads that hold a row, in blocks of one row, which reach every
// multiprocessor when rows are few, or of several; and more threads for a row.
std::vector<Config> configs(Problem const& problem)
{
    constexpr int64_t kBlock = 128;
    int64_t const width = 16 / sizeOf(problem.inputs[0].type), n = longestRow(problem);
    Extents const& x = problem.inputs[0].dims;
    int64_t const rows = x.volume(0, int(problem.node->attrsAs<Attrs>().axis));
    bool const few = problem.cuda && rows <= int64_t(problem.cuda->multiprocessors) * 8;
    std::vector<Config> list;
    for (int64_t row : kRowThreads) {
        if (row * width * kMostPacks < n)
            continue;
        if (!list.empty() && (row - kBlock) * width >= n) // too many of them idle
            break;
        if (row < kBlock && few)
            list.push_back({row, row});
        list.push_back({row, std::max(row, kBlock)});
        if (list.size() >= 2)
            break;
    }
    return list;
}

CudaKernels generateRows(Problem const& problem, Config const& config)
{
    if (!isConfig(config, 2, 32, 512) ||
        std::find(kRowThreads, std::end(kRowThreads), config[0]) == std::end(kRowThreads) || config[1] % config[0] != 0)
        return noKernels(invalidArgument("the plan's configuration of a layer norm names no kernel"));
    auto const& a = problem.node->attrsAs<Attrs>();
    int64_t const width = 16 / sizeOf(problem.inputs[0].type), n = longestRow(problem), row = config[0],
                  threads = config[1], packs = std::max<int64_t>((n + row * width - 1) / (row * width), 1);
    bool early = true;
    for (size_t i = 1; i < problem.inputs.size(); ++i)
        early = early && problem.inputs[i].constant;
    auto flag = [](bool v) { return v ? "true" : "false"; };
    CudaKernels out;
    out.wide = isWide(problem);
    out.isDependent = true;
    out.names = {"layer_norm_packs", "layer_norm_elements"};
    out.source = cuda::expand(std::string(kCommon) + kRowsText, {{"t", cuda::storageOf(problem.outputs[0].type)},
                                                                 {"epsilon", cuda::literal(float(a.epsilon))},
                                                                 {"gamma", flag(a.hasGamma)},
                                                                 {"beta", flag(a.hasBeta)},
                                                                 {"early", flag(early)},
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
constexpr CudaTactic kRows{"layer_norm_rows_cuda", 2, generateRows, supportsRows, configs};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kRows, &kChunks, &kPlain};
    return kList;
}

} // namespace tw::ops::layer_norm
