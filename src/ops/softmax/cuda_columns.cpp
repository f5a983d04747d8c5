// SPDX-License-Identifier: Apache-2.0
#include "ops/softmax/cuda_columns.h"

#include <algorithm>
#include <array>
#include <bit>

#include "kernels/cuda/common/generate.h"
#include "ops/softmax/op.h"

namespace tw::ops::softmax {

namespace {

constexpr int64_t kMostThreads = 512, kMostLanes = 256, kMostParts = 32;
constexpr int64_t kLongColumn = 100;  // along an axis
constexpr int64_t kMostOfEight = 320; // along an axis, which eight threads hold in packs of four
constexpr int64_t kMostPaired = 160;  // FP16, two in a register
constexpr int64_t kMostSingles = 48;  // FP16, one in a register as FP32: more are pairs
constexpr int64_t kMostNumbers = 96;  // of a column's, times the columns of a pack, in the registers of a thread

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    uint64_t packs = 0, n = 0; // of columns, those of all outer matrices in a row; of the axis
    cuda::Div packsOfRow;
};

// Exponentials below a column's largest number: power(x, baseOf(m)) is exp(x - m); between(a, b) takes powers above
// base a to those above base b.
constexpr char const* kPowers = R"(
TW_INLINE float baseOf(float m) { return m; }
TW_INLINE float power(float x, float base) { return exp(x - base); }
TW_INLINE float between(float a, float b) { return exp(a - b); }
)";
// For FP16, of 2: a base's rounding is in all powers of a column and cancels out; none that matters is subnormal.
constexpr char const* kHalfPowers = R"(
TW_INLINE float power2(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
TW_INLINE float baseOf(float m) { return m * 1.44269504f; }
TW_INLINE float power(float x, float base) { return power2(fmaf(x, 1.44269504f, -base)); }
TW_INLINE float between(float a, float b) { return power2(a - b); }
)";

// x: [outer, n, inner]. A block has X packs of V neighbouring columns; Y threads share the axis of each, so that every
// number is read once and stays in a register.
constexpr char const* kText = R"(
struct Params { void const* x; void* y; u64 packs, n; Div packsOfRow; };
typedef $t$ T;
constexpr int N = $n$, X = $lanes$, Y = $parts$, EACH = (N + Y - 1) / Y;
constexpr bool EXACT = $exact$, RAW = $raw$; // RAW: registers keep FP16 numbers, x and then powers, not FP32
$powers$
TW_INLINE float larger(float a, float b) { return fmaxf(a, b); } // NaN shows in the sums
TW_INLINE float sum(float a, float b) { return a + b; }
// Two FP16 numbers.
TW_INLINE u32 largerPair(u32 a, u32 b) { u32 w; asm("max.f16x2 %0, %1, %2;" : "=r"(w) : "r"(a), "r"(b)); return w; }
TW_INLINE void split(u32 w, float& a, float& b)
{
    asm("{\n.reg .b16 a, b;\nmov.b32 {a, b}, %2;\ncvt.f32.f16 %0, a;\ncvt.f32.f16 %1, b;\n}" : "=f"(a), "=f"(b) : "r"(w));
}
TW_INLINE u32 join(float a, float b) { u32 w; asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(b), "f"(a)); return w; }
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
// Of each thread's largest number, which is in part[0], and its sum of exponentials below that, those of the column.
template <int V> TW_INLINE void shareBoth(float (&m)[V], float (&s)[V], float (&part)[2][Y][V][X])
{
    if (Y == 1) return;
    int const cx = threadIdx.x % X, cy = threadIdx.x / X;
#pragma unroll
    for (int k = 0; k < V; ++k) part[1][cy][k][cx] = s[k];
    __syncthreads();
    float *const largest = &part[0][0][0][0], *const sums = &part[1][0][0][0];
    for (int c = threadIdx.x; c < V * X; c += X * Y) {
        float all = largest[c], total = 0;
#pragma unroll
        for (int r = 1; r < Y; ++r) all = larger(all, largest[r * V * X + c]);
#pragma unroll
        for (int r = 0; r < Y; ++r) total += sums[r * V * X + c] * between(largest[r * V * X + c], all);
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
    // Threads behind the last pack do as the last one does, and store nothing.
    idx const wanted = blockIdx.x * idx(X) + threadIdx.x % X, pack = min(wanted, idx(p.packs) - 1), o = divide(pack, p.packsOfRow);
    int const cy = threadIdx.x / X, n = EXACT ? N : int(p.n);
    i64 const inner = i64(p.packsOfRow.d) * V, begin = i64(o) * n * inner + i64(pack - o * idx(p.packsOfRow.d)) * V + cy * inner;
    T const* const x = static_cast<T const*>(p.x) + begin;
    T* const y = static_cast<T*>(p.y) + begin;
    // Of thread cy: cy, cy + Y, ...
    auto has = [&](int i) { return (EXACT && (i + 1) * Y <= N) || cy + i * Y < n; };
    waitForPrevious();
    releaseDependents();
    if constexpr (RAW && V >= 2) {
        typedef Pack<u32, V / 2> Pairs;
        Pairs u[EACH], most;
        float m[V], s[V], base[V];
#pragma unroll
        for (int i = 0; i < EACH; ++i)
            if (has(i)) u[i] = *reinterpret_cast<Pairs const*>(x + i * Y * inner);
#pragma unroll
        for (int k = 0; k < V; k += 2) {
            most.v[k / 2] = 0xfc00fc00; // -inf
#pragma unroll
            for (int i = 0; i < EACH; ++i)
                if (has(i)) most.v[k / 2] = largerPair(most.v[k / 2], u[i].v[k / 2]);
            split(most.v[k / 2], m[k], m[k + 1]);
        }
#pragma unroll
        for (int k = 0; k < V; ++k) {
            m[k] = baseOf(m[k]);
            if (Y > 1) part[0][threadIdx.x / X][k][threadIdx.x % X] = m[k];
            // A thread of nothing but -inf adds nothing to the sum of others.
            base[k] = Y > 1 && m[k] == -__int_as_float(0x7f800000) ? 0.0f : m[k];
            s[k] = 0;
        }
#pragma unroll
        for (int i = 0; i < EACH; ++i)
            if (has(i))
#pragma unroll
                for (int k = 0; k < V; k += 2) {
                    float a, b;
                    split(u[i].v[k / 2], a, b);
                    a = power(a, base[k]);
                    b = power(b, base[k + 1]);
                    s[k] += a;
                    s[k + 1] += b;
                    u[i].v[k / 2] = join(a, b);
                }
        if constexpr (Y > 1) shareBoth<V>(m, s, part);
        if (wanted != pack) return;
#pragma unroll
        for (int k = 0; k < V; ++k) s[k] = between(fminf(base[k] - m[k], 0.0f), 0.0f) / s[k];
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            if (!has(i)) continue;
            Pairs to;
#pragma unroll
            for (int k = 0; k < V; k += 2) {
                float a, b;
                split(u[i].v[k / 2], a, b);
                to.v[k / 2] = join(a * s[k], b * s[k + 1]);
            }
            *reinterpret_cast<Pairs*>(y + i * Y * inner) = to;
        }
        return;
    }
    float v[EACH][V], m[V], s[V];
#pragma unroll
    for (int k = 0; k < V; ++k) { m[k] = -__int_as_float(0x7f800000); s[k] = 0; }
    {
        Pack<T, V> u[EACH];
#pragma unroll
        for (int i = 0; i < EACH; ++i)
            if (has(i)) u[i] = *reinterpret_cast<Pack<T, V> const*>(x + i * Y * inner);
#pragma unroll
        for (int i = 0; i < EACH; ++i)
            if (has(i))
#pragma unroll
                for (int k = 0; k < V; ++k) {
                    v[i][k] = load<float>(u[i].v[k]);
                    m[k] = larger(m[k], v[i][k]);
                }
    }
    share<V>(m, part[0], larger);
#pragma unroll
    for (int k = 0; k < V; ++k) m[k] = baseOf(m[k]);
#pragma unroll
    for (int i = 0; i < EACH; ++i)
        if (has(i))
#pragma unroll
            for (int k = 0; k < V; ++k) {
                v[i][k] = power(v[i][k], m[k]);
                s[k] += v[i][k];
            }
    share<V>(s, part[Y == 1 ? 0 : 1], sum);
    if (wanted != pack) return;
#pragma unroll
    for (int k = 0; k < V; ++k) s[k] = 1 / s[k];
#pragma unroll
    for (int i = 0; i < EACH; ++i) {
        if (!has(i)) continue;
        Pack<T, V> to;
#pragma unroll
        for (int k = 0; k < V; ++k) to.v[k] = store<T>(v[i][k] * s[k]);
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

// Whether threads keep pairs of FP16: where numbers are many, half the registers are worth that powers are rounded.
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
    auto put = [&](Shares const& s) {
        Config const config{s.width, s.lanes, s.parts};
        if (inner % s.width == 0 && fits(s, x.type, n) && std::find(list.begin(), list.end(), config) == list.end())
            list.push_back(config);
    };
    // Long columns of FP16: 128 bytes of columns at least, 256 where a thread's part fits its registers, in blocks of
    // 128 or 256 threads, of which several share a multiprocessor.
    if (x.type == DataType::kHalf && n > kLongColumn && widest >= 2) {
        if (n <= kMostOfEight)
            for (Shares const& s : {Shares{4, 32, 4}, {4, 32, 8}, {2, 64, 4}, {8, 16, 16}, {2, 16, 16}})
                put(s);
        else
            for (Shares const& s : {Shares{8, 8, 32}, {4, 16, 16}, {4, 8, 32}})
                put(s);
        for (Shares const& s : {Shares{2, 32, 8}, {2, 16, 16}, {2, 32, 16}})
            if (widest == 2 || list.empty())
                put(s);
    }
    // As few threads a column as hold it in `enough` registers each, in blocks of 128 or 256.
    auto add = [&](int64_t width, int64_t enough, int64_t threads) {
        Shares s{width, 32, 1};
        while (s.parts < 16 && s.numbers(n) > enough)
            s.parts *= 2;
        s.lanes = std::max(s.lanes, threads / s.parts);
        put(s);
    };
    if (list.empty())
        for (int64_t width = widest; width >= 1 && width * 2 >= widest; width /= 2)
            for (int64_t enough : {48, 24})
                for (int64_t threads : {128, 256})
                    add(width, enough, threads);
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
                             {"powers", x.type == DataType::kHalf ? kHalfPowers : kPowers}}) +
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
