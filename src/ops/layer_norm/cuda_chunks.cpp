// SPDX-License-Identifier: Apache-2.0
// A row in chunks, a block for each. The first kernel leaves mean and sum of squared differences of each chunk in the
// workspace; the second one adds a row's up, as if all had been summed around one mean, and normalizes its chunk, which
// is still in L2 when x is not too large.
#include "ops/layer_norm/cuda_chunks.h"

#include "ops/layer_norm/op.h"

namespace tw::ops::layer_norm {

namespace {

constexpr int kThreads = 256;

struct Params
{
    void const *x = nullptr, *gamma = nullptr, *beta = nullptr;
    void* y = nullptr;
    void* parts = nullptr; // of each row and chunk: mean, sum of squared differences from it
    uint64_t n = 0;
    cuda::Div chunks;
};

constexpr char const* kText = R"(
struct Params { void const *x, *gamma, *beta; void* y; float2* parts; u64 n; Div chunks; };
typedef $t$ T;
constexpr int THREADS = $threads$, PACKS = $packs$, WIDTH = $width$;
constexpr idx CHUNK = THREADS * PACKS * WIDTH;
TW_INLINE float sum(float a, float b) { return a + b; }

// A block's chunk: V elements in each of P packs a thread.
struct Chunk {
    idx row, number, begin, count;
    TW_INLINE Chunk(Params const& p)
    {
        row = divide(idx(blockIdx.x), p.chunks);
        number = blockIdx.x - row * idx(p.chunks.d);
        begin = number * CHUNK;
        count = min(CHUNK, idx(p.n) - begin);
    }
};
template <int V, int P> TW_INLINE void fetch(T const* base, idx packs, Pack<T, V> (&to)[P])
{
#pragma unroll
    for (int i = 0; i < P; ++i)
        if (i * THREADS + threadIdx.x < packs) to[i] = reinterpret_cast<Pack<T, V> const*>(base)[i * THREADS + threadIdx.x];
}
template <int V, int P> TW_INLINE void measure(Params const& p)
{
    __shared__ float scratch[32];
    Chunk const c(p);
    idx const packs = c.count / V;
    Pack<T, V> x[P];
    releaseDependents();
    waitForPrevious();
    fetch(static_cast<T const*>(p.x) + i64(c.row) * p.n + c.begin, packs, x);
    float v[P][V], mean = 0, squares = 0;
#pragma unroll
    for (int i = 0; i < P; ++i) {
        if (i * THREADS + threadIdx.x >= packs) continue;
#pragma unroll
        for (int j = 0; j < V; ++j) { v[i][j] = load<float>(x[i].v[j]); mean += v[i][j]; }
    }
    mean = blockReduce(mean, 0.0f, scratch, sum) / float(c.count);
#pragma unroll
    for (int i = 0; i < P; ++i) {
        if (i * THREADS + threadIdx.x >= packs) continue;
#pragma unroll
        for (int j = 0; j < V; ++j) squares += (v[i][j] - mean) * (v[i][j] - mean);
    }
    squares = blockReduce(squares, 0.0f, scratch, sum);
    if (threadIdx.x == 0) p.parts[blockIdx.x] = make_float2(mean, squares);
}
template <int V, int P> TW_INLINE void normalize(Params const& p)
{
    __shared__ float scratch[32];
    Chunk const c(p);
    idx const packs = c.count / V, chunks = idx(p.chunks.d);
    Pack<T, V> x[P], gamma[P], beta[P];
    releaseDependents();
    waitForPrevious();
    fetch(static_cast<T const*>(p.x) + i64(c.row) * p.n + c.begin, packs, x);
    if ($gamma$) fetch(static_cast<T const*>(p.gamma) + c.begin, packs, gamma);
    if ($beta$) fetch(static_cast<T const*>(p.beta) + c.begin, packs, beta);
    float2 const* const parts = p.parts + c.row * chunks;
    auto countOf = [&](idx i) { return float(min(CHUNK, idx(p.n) - i * CHUNK)); };
    float mean = 0, squares = 0;
    for (idx i = threadIdx.x; i < chunks; i += THREADS) mean += parts[i].x * countOf(i);
    mean = blockReduce(mean, 0.0f, scratch, sum) / float(p.n);
    for (idx i = threadIdx.x; i < chunks; i += THREADS) {
        float const away = parts[i].x - mean;
        squares += parts[i].y + away * away * countOf(i);
    }
    float const scale = 1 / sqrt(blockReduce(squares, 0.0f, scratch, sum) / float(p.n) + $epsilon$);
    T* const y = static_cast<T*>(p.y) + i64(c.row) * p.n + c.begin;
#pragma unroll
    for (int i = 0; i < P; ++i) {
        idx const at = i * THREADS + threadIdx.x;
        if (at >= packs) continue;
        Pack<T, V> pack;
#pragma unroll
        for (int j = 0; j < V; ++j) {
            float const g = $gamma$ ? load<float>(gamma[i].v[j]) : 1, b = $beta$ ? load<float>(beta[i].v[j]) : 0;
            pack.v[j] = store<T>((load<float>(x[i].v[j]) - mean) * scale * g + b);
        }
        reinterpret_cast<Pack<T, V>*>(y)[at] = pack;
    }
}
TW_KERNEL measure_packs(const __grid_constant__ Params p) { measure<WIDTH, PACKS>(p); }
TW_KERNEL normalize_packs(const __grid_constant__ Params p) { normalize<WIDTH, PACKS>(p); }
TW_KERNEL measure_elements(const __grid_constant__ Params p) { measure<1, PACKS * WIDTH>(p); }
TW_KERNEL normalize_elements(const __grid_constant__ Params p) { normalize<1, PACKS * WIDTH>(p); }
)";

// A row's length and the rows of x.
int64_t lengthOf(Attrs const& a, Extents const& x)
{
    return x.volume(int(a.axis), x.rank);
}
int64_t rowsOf(Attrs const& a, Extents const& x)
{
    return x.volume(0, int(a.axis));
}

int64_t chunkOf(Problem const& problem, int64_t packs)
{
    return kThreads * packs * (16 / sizeOf(problem.inputs[0].type));
}

int64_t chunksOf(int64_t n, int64_t chunk)
{
    return (n + chunk - 1) / chunk;
}

Support supports(Problem const& problem)
{
    constexpr int64_t kLeast = 2048, kMostBlocks = int64_t(1) << 30; // shorter rows have one block each
    auto const& a = problem.node->attrsAs<Attrs>();
    if (lengthOf(a, problem.inputs[0].maxDims) < kLeast)
        return Support::no("leaves rows of less than " + std::to_string(kLeast) + " elements to others");
    Extents const& x = problem.inputs[0].maxDims;
    if (rowsOf(a, x) * chunksOf(lengthOf(a, x), chunkOf(problem, 1)) > kMostBlocks)
        return Support::no("takes at most 2^30 chunks");
    return Support::yes();
}

// {packs of a thread}: small chunks reach every multiprocessor when there is little to do, large ones read less twice.
std::vector<Config> configs(Problem const& problem)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    Extents const& x = problem.inputs[0].dims;
    auto blocks = [&](int64_t packs) { return rowsOf(a, x) * chunksOf(lengthOf(a, x), chunkOf(problem, packs)); };
    int64_t const many = problem.cuda ? int64_t(problem.cuda->multiprocessors) * 4 : 1;
    if (blocks(4) >= many)
        return {{4}, {2}};
    return blocks(2) >= many ? std::vector<Config>{{2}, {1}} : std::vector<Config>{{1}, {2}};
}

CudaKernels generate(Problem const& problem, Config const& config)
{
    if (!isConfig(config, 1, 1, 4) || config[0] == 3)
        return noKernels(invalidArgument("the plan's configuration of a layer norm names no kernel"));
    auto const& a = problem.node->attrsAs<Attrs>();
    int64_t const width = 16 / sizeOf(problem.inputs[0].type), chunk = chunkOf(problem, config[0]);
    auto flag = [](bool v) { return v ? "true" : "false"; };
    CudaKernels out;
    out.wide = isWide(problem);
    out.isDependent = true;
    out.names = {"measure_packs", "normalize_packs", "measure_elements", "normalize_elements"};
    out.source = cuda::expand(kText, {{"t", cuda::storageOf(problem.outputs[0].type)},
                                      {"epsilon", cuda::literal(float(a.epsilon))},
                                      {"gamma", flag(a.hasGamma)},
                                      {"beta", flag(a.hasBeta)},
                                      {"threads", std::to_string(kThreads)},
                                      {"width", std::to_string(width)},
                                      {"packs", std::to_string(config[0])}}) +
                 cuda::sizeCheck<Params>();
    out.workspace = [&a, chunk](std::span<TensorRef const> in, std::span<TensorRef const>) {
        return rowsOf(a, in[0].dims) * chunksOf(lengthOf(a, in[0].dims), chunk) * int64_t(2 * sizeof(float));
    };
    out.run = [&a, width, chunk](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const& x = args.inputs[0];
        Params p;
        p.x = x.data;
        p.y = args.outputs[0].data;
        p.gamma = a.hasGamma ? args.inputs[size_t(a.gammaInput())].data : nullptr;
        p.beta = a.hasBeta ? args.inputs[size_t(a.betaInput())].data : nullptr;
        p.parts = args.workspace;
        p.n = uint64_t(lengthOf(a, x.dims));
        int64_t const chunks = chunksOf(int64_t(p.n), chunk), blocks = rowsOf(a, x.dims) * chunks;
        p.chunks = cuda::divBy(chunks);
        uint64_t const all =
            cuda::addressOf(p.x) | cuda::addressOf(p.y) | cuda::addressOf(p.gamma) | cuda::addressOf(p.beta);
        int const first = int64_t(p.n) % width == 0 && all % 16 == 0 ? 0 : 2;
        TW_TRY(launch(first, blocks, kThreads, p));
        return launch(first + 1, blocks, kThreads, p);
    };
    return out;
}

} // namespace

constinit CudaTactic const kChunks{"layer_norm_chunks_cuda", 1, generate, supports, configs};

} // namespace tw::ops::layer_norm
