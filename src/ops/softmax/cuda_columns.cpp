// SPDX-License-Identifier: Apache-2.0
#include "ops/softmax/cuda_columns.h"

#include <algorithm>
#include <array>
#include <bit>

#include "kernels/cuda/generate.h"
#include "ops/softmax/op.h"

namespace tw::ops::softmax {

namespace {

constexpr int64_t kMostThreads = 512, kMostLanes = 256, kMostParts = 32;
constexpr int64_t kLongColumn = 300;
constexpr int64_t kMostPaired = 160; // FP16, two in a register
constexpr int64_t kMostSingles = 48; // FP16, one in a register as FP32: more stay pairs
constexpr int64_t kMostNumbers = 96; // of a column's, times the columns of a pack, in the registers of a thread

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    uint64_t packs = 0, n = 0; // of columns, those of all outer matrices in a row; of the axis
    cuda::Div packsOfRow;
};

// x: [outer, n, inner]. A block has X packs of V neighbouring columns; Y threads share the axis of each, so that every
// number is read once and stays in a register.
constexpr char const* kText = R"(
struct Params { void const* x; void* y; u64 packs, n; Div packsOfRow; };
typedef $t$ T;
constexpr int N = $n$, X = $lanes$, Y = $parts$, EACH = (N + Y - 1) / Y;
constexpr bool EXACT = $exact$, RAW = $raw$; // RAW: the registers keep x, and exponentials are worked out twice
TW_INLINE float larger(float a, float b) { return fmaxf(a, b); } // NaN shows in the sums
TW_INLINE float sum(float a, float b) { return a + b; }
// Over the Y threads of a column.
template <int V, class F> TW_INLINE void share(float (&v)[V], float (&part)[Y][V][X], F f)
{
    if (Y == 1) return;
    int const cx = threadIdx.x % X, cy = threadIdx.x / X;
#pragma unroll
    for (int k = 0; k < V; ++k) part[cy][k][cx] = v[k];
    __syncthreads();
    if (Y >= 8) { // else every thread would read as much as it has
        float* const all = &part[0][0][0];
        for (int c = threadIdx.x; c < V * X; c += X * Y) {
            float sum = all[c];
#pragma unroll
            for (int r = 1; r < Y; ++r) sum = f(sum, all[r * V * X + c]);
            all[c] = sum;
        }
        __syncthreads();
    }
#pragma unroll
    for (int k = 0; k < V; ++k) v[k] = part[0][k][cx];
    if (Y < 8)
#pragma unroll
        for (int r = 1; r < Y; ++r)
#pragma unroll
            for (int k = 0; k < V; ++k) v[k] = f(v[k], part[r][k][cx]);
}
// Of each thread's largest number and its sum of exponentials below that, those of the column.
template <int V> TW_INLINE void shareBoth(float (&m)[V], float (&s)[V], float (&part)[2][Y][V][X])
{
    if (Y == 1) return;
    int const cx = threadIdx.x % X, cy = threadIdx.x / X;
#pragma unroll
    for (int k = 0; k < V; ++k) {
        part[0][cy][k][cx] = m[k];
        part[1][cy][k][cx] = s[k];
    }
    __syncthreads();
    float *const largest = &part[0][0][0][0], *const sums = &part[1][0][0][0];
    for (int c = threadIdx.x; c < V * X; c += X * Y) {
        float all = largest[c], total = 0;
#pragma unroll
        for (int r = 1; r < Y; ++r) all = larger(all, largest[r * V * X + c]);
#pragma unroll
        for (int r = 0; r < Y; ++r) total += sums[r * V * X + c] * $exp$(largest[r * V * X + c] - all);
        largest[c] = all;
        sums[c] = total;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < V; ++k) {
        m[k] = part[0][0][k][cx];
        s[k] = part[1][0][k][cx];
    }
}
template <int V> TW_INLINE void columns(Params const& p)
{
    __shared__ float part[Y == 1 ? 1 : 2][Y][V][X];
    waitForPrevious();
    releaseDependents();
    // Threads behind the last pack do as the last one does, and store nothing.
    idx const wanted = blockIdx.x * idx(X) + threadIdx.x % X, pack = min(wanted, idx(p.packs) - 1), o = divide(pack, p.packsOfRow);
    int const cy = threadIdx.x / X, n = EXACT ? N : int(p.n);
    i64 const inner = i64(p.packsOfRow.d) * V, begin = i64(o) * n * inner + i64(pack - o * idx(p.packsOfRow.d)) * V + cy * inner;
    T const* const x = static_cast<T const*>(p.x) + begin;
    T* const y = static_cast<T*>(p.y) + begin;
    // Of thread cy: cy, cy + Y, ...
    auto has = [&](int i) { return (EXACT && (i + 1) * Y <= N) || cy + i * Y < n; };
    Pack<T, V> u[EACH];
#pragma unroll
    for (int i = 0; i < EACH; ++i)
        if (has(i)) u[i] = *reinterpret_cast<Pack<T, V> const*>(x + i * Y * inner);
    float v[RAW ? 1 : EACH][V], m[V], s[V];
    auto at = [&](int i, int k) -> float { return RAW ? load<float>(u[i].v[k]) : v[RAW ? 0 : i][k]; };
#pragma unroll
    for (int k = 0; k < V; ++k) { m[k] = -__int_as_float(0x7f800000); s[k] = 0; }
#pragma unroll
    for (int i = 0; i < EACH; ++i)
        if (has(i))
#pragma unroll
            for (int k = 0; k < V; ++k) {
                float const x = load<float>(u[i].v[k]);
                if (!RAW) v[RAW ? 0 : i][k] = x;
                m[k] = larger(m[k], x);
            }
    if (!RAW) share<V>(m, part[0], larger);
    float base[V]; // a thread of nothing but -inf adds nothing to the sum of others
#pragma unroll
    for (int k = 0; k < V; ++k) base[k] = RAW && Y > 1 && m[k] == -__int_as_float(0x7f800000) ? 0.0f : m[k];
#pragma unroll
    for (int i = 0; i < EACH; ++i)
        if (has(i))
#pragma unroll
            for (int k = 0; k < V; ++k) {
                float const e = $exp$(at(i, k) - base[k]);
                if (!RAW) v[RAW ? 0 : i][k] = e;
                s[k] += e;
            }
    if constexpr (RAW && Y > 1) shareBoth<V>(m, s, part);
    else share<V>(s, part[Y == 1 ? 0 : 1], sum);
    if (wanted != pack) return;
#pragma unroll
    for (int k = 0; k < V; ++k) s[k] = 1 / s[k];
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
        if (!has(i)) continue;
        Pack<T, V> to;
#pragma unroll
        for (int k = 0; k < V; ++k) to.v[k] = store<T>((RAW ? $exp$(at(i, k) - m[k]) : at(i, k)) * s[k]);
        *reinterpret_cast<Pack<T, V>*>(y + i * Y * inner) = to;
    }
}
TW_KERNEL __launch_bounds__(X * Y, $resident$) softmax_columns_packs(const __grid_constant__ Params p) { columns<$width$>(p); }
TW_KERNEL __launch_bounds__(X * Y, $resident$) softmax_columns(const __grid_constant__ Params p) { columns<1>(p); }
)";

// How a tile of columns is shared out: columns of a pack, lanes along the columns, threads along the axis.
struct Shares
{
    int64_t width = 1, lanes = 128, parts = 1;

    int64_t threads() const { return lanes * parts; }
    int64_t numbers(int64_t n) const { return cuda::ceilDiv(n, parts) * width; }
};

bool fits(Shares const& s, DataType t, int64_t n)
{
    return s.numbers(n) <= (t == DataType::kHalf && s.width >= 2 ? kMostPaired : kMostNumbers) &&
           s.threads() % 32 == 0 && s.threads() <= kMostThreads && std::has_single_bit(uint64_t(s.width)) &&
           std::has_single_bit(uint64_t(s.lanes)) && s.width * sizeOf(t) <= 16 && s.lanes <= kMostLanes &&
           s.parts <= kMostParts;
}

// Whether threads keep pairs of FP16 as they are: where they are many, half the registers are worth more than half the
// exponentials.
bool isRaw(Shares const& s, DataType t, int64_t n)
{
    return t == DataType::kHalf && s.width >= 2 && s.numbers(n) > kMostSingles;
}

// Blocks of a multiprocessor by the registers that a thread needs: its numbers, of each column a few, addresses.
int64_t residentOf(Shares const& s, DataType t, int64_t n)
{
    constexpr int64_t kRegisters = 65536, kThreads = 2048;
    int64_t const others = 24 + 3 * s.width, numbers = isRaw(s, t, n) ? s.numbers(n) / 2 : s.numbers(n);
    return std::clamp<int64_t>(std::min(kRegisters / ((numbers + others) * s.threads()), kThreads / s.threads()), 1,
                               32);
}

} // namespace

Support supportsColumns(Problem const& problem)
{
    TensorSpec const& x = problem.inputs[0];
    int const axis = int(problem.node->attrsAs<Attrs>().axis);
    if (x.maxDims[axis] > kMostParts * kMostNumbers / 4)
        return Support::no("takes at most " + std::to_string(kMostParts * kMostNumbers / 4) +
                           " elements along the axis");
    if (x.dims.volume(axis + 1, x.dims.rank) < 2)
        return Support::no("takes axes with others behind them");
    return Support::yes();
}

// {columns of a pack, lanes along the columns, threads along the axis}
std::vector<Config> configsOfColumns(Problem const& problem)
{
    TensorSpec const& x = problem.inputs[0];
    int const axis = int(problem.node->attrsAs<Attrs>().axis);
    int64_t const n = std::max<int64_t>(x.maxDims[axis], 1), inner = x.dims.volume(axis + 1, x.dims.rank);
    std::vector<Config> list;
    int64_t widest = 4; // wider packs of FP16 need more threads for each column
    while (inner % widest != 0)
        widest /= 2;
    // As few threads a column as hold it in `enough` registers each, in blocks of 128 or 256.
    auto add = [&](int64_t width, int64_t enough, int64_t threads) {
        Shares s{width, 32, 1};
        while (s.parts < 16 && s.numbers(n) > enough)
            s.parts *= 2;
        s.lanes = std::max(s.lanes, threads / s.parts);
        Config const config{s.width, s.lanes, s.parts};
        if (fits(s, x.type, n) && std::find(list.begin(), list.end(), config) == list.end())
            list.push_back(config);
    };
    for (int64_t width = widest; width >= 1 && width * 2 >= widest; width /= 2)
        for (int64_t enough : {48, 24})
            for (int64_t threads : {128, 256})
                add(width, enough, threads);
    // Long columns: blocks of 256 threads, of which several share a multiprocessor.
    for (auto const& [width, lanes, parts] : {std::array<int64_t, 3>{4, 16, 16}, {4, 8, 32}, {2, 16, 16}}) {
        Config const config{width, lanes, parts};
        if (n > kLongColumn && inner % width == 0 && fits({width, lanes, parts}, x.type, n) &&
            std::find(list.begin(), list.end(), config) == list.end())
            list.push_back(config);
    }
    if (list.empty())
        list.push_back({1, 32, 16});
    return list;
}

CudaKernels generateColumns(Problem const& problem, Config const& config)
{
    TensorSpec const& x = problem.inputs[0];
    int const axis = int(problem.node->attrsAs<Attrs>().axis);
    int64_t const n = std::max<int64_t>(x.maxDims[axis], 1);
    Shares s{1, 32, 16};
    if (isConfig(config, 3, 1, kMostLanes) && fits({config[0], config[1], config[2]}, x.type, n))
        s = {config[0], config[1], config[2]};
    CudaKernels out;
    out.wide = isWide(problem);
    out.isDependent = true;
    out.names = {"softmax_columns_packs", "softmax_columns"};
    out.source =
        cuda::expand(kText, {{"t", cuda::storageOf(x.type)},
                             {"n", std::to_string(n)},
                             {"exact", problem.node->inputs[0]->shape[size_t(axis)].isConst() ? "true" : "false"},
                             {"lanes", std::to_string(s.lanes)},
                             {"parts", std::to_string(s.parts)},
                             {"width", std::to_string(s.width)},
                             {"raw", isRaw(s, x.type, n) ? "true" : "false"},
                             {"resident", std::to_string(residentOf(s, x.type, n))},
                             {"exp", x.type == DataType::kHalf ? "__expf" : "exp"}}) +
        cuda::sizeCheck<Params>();
    out.run = [axis, s](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &in = args.inputs[0], &y = args.outputs[0];
        int64_t const inner = in.dims.volume(axis + 1, in.dims.rank), columns = in.dims.volume(0, axis) * inner;
        bool const isPacked =
            inner % s.width == 0 &&
            (cuda::addressOf(in.data) | cuda::addressOf(y.data)) % uint64_t(s.width * sizeOf(in.type)) == 0;
        int64_t const width = isPacked ? s.width : 1;
        Params p;
        p.x = in.data;
        p.y = y.data;
        p.packs = uint64_t(columns / width);
        p.n = uint64_t(in.dims[axis]);
        p.packsOfRow = cuda::divBy(inner / width);
        return launch(isPacked ? 0 : 1, blocksFor(int64_t(p.packs), int(s.lanes)), int(s.threads()), p);
    };
    return out;
}

} // namespace tw::ops::softmax
