// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/cuda_cudnn.h"
#include "ops/attention/op.h"
#include "ops/attention/tactics.h"

namespace tw::ops::attention {

namespace {

constexpr int kThreads = 128;

struct Params
{
    void const *q = nullptr, *k = nullptr, *v = nullptr, *mask = nullptr, *keep = nullptr;
    void* y = nullptr;
    Place at[5]; // q, k, v, mask, keep
    int64_t heads = 0, rows = 0, columns = 0, size = 0, valueSize = 0;
    cuda::Div chunks, rowCount, headCount; // chunks: of the value's columns
};

// A block for each row of scores and each 128 columns of the value: scores in chunks of 128, one for each thread; sum
// and result are scaled again when the largest score grows.
constexpr char const* kText = R"(
struct Place { i64 offset, batch, head, row; };
struct Params {
    void const *q, *k, *v, *mask, *keep; void* y; Place at[5]; i64 heads, rows, columns, size, valueSize;
    Div chunks, rowCount, headCount;
};
typedef $t$ T;
#define TW_LOWEST (-__int_as_float(0x7f800000))
TW_INLINE float larger(float a, float b) { return b > a ? b : a; }
TW_INLINE float sum(float a, float b) { return a + b; }
TW_INLINE i64 place(Place const& p, i64 b, i64 h, i64 row)
{
    return p.offset + b * p.batch + h * p.head + row * p.row;
}
TW_KERNEL attention(const __grid_constant__ Params p)
{
    __shared__ float weights[$threads$], scratch[32];
    idx const rest = divide(blockIdx.x, p.chunks), bh = divide(rest, p.rowCount), b = divide(bh, p.headCount);
    i64 const i = i64(rest - bh * idx(p.rowCount.d)), h = i64(bh - b * idx(p.headCount.d));
    i64 const d = i64(blockIdx.x - rest * idx(p.chunks.d)) * $threads$ + threadIdx.x;
    T const* const q = static_cast<T const*>(p.q) + place(p.at[0], b, h, i);
    T const* const v = static_cast<T const*>(p.v) + place(p.at[2], b, h, 0);
    float m = TW_LOWEST, s = 0, result = 0;
    for (i64 first = 0; first < p.columns; first += $threads$) {
        i64 const j = first + threadIdx.x;
        float t = TW_LOWEST;
        if (j < p.columns) {
            T const* const k = static_cast<T const*>(p.k) + place(p.at[1], b, h, j);
            t = 0;
            for (i64 e = 0; e < p.size; ++e) t += load<float>(q[e]) * load<float>(k[e]);
            t *= $scale$;
            if (p.keep &&
                (static_cast<b8 const*>(p.keep)[place(p.at[4], b, h, i) + j].v != 0) == $inverted$) t = $fill$;
            if (p.mask) t += load<float>(static_cast<T const*>(p.mask)[place(p.at[3], b, h, i) + j]);
        }
        float const next = larger(m, blockReduce(t, TW_LOWEST, scratch, larger));
        // Nothing but -inf so far has no weight yet; NaN stays.
        float const w = j < p.columns ? (next == TW_LOWEST && t == t ? 0 : exp(t - next)) : 0;
        float const again = m == next ? 1 : exp(m - next);
        s = s * again + blockReduce(w, 0.0f, scratch, sum);
        result *= again;
        m = next;
        weights[threadIdx.x] = w;
        __syncthreads();
        i64 const many = min(p.columns - first, i64($threads$));
        if (d < p.valueSize)
            for (i64 e = 0; e < many; ++e) result += weights[e] * load<float>(v[(first + e) * p.at[2].row + d]);
    }
    if (d < p.valueSize)
        static_cast<T*>(p.y)[((i64(b) * p.rows + i) * p.heads + h) * p.valueSize + d] =
            store<T>(p.columns == 0 ? 0.0f : result / s);
}
)";

CudaKernels generate(Problem const& problem, Config const&)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    CudaKernels out;
    out.wide = isWide(problem);
    out.names = {"attention"};
    out.source = cuda::expand(kText, {{"t", cuda::storageOf(problem.outputs[0].type)},
                                      {"threads", std::to_string(kThreads)},
                                      {"scale", cuda::literal(float(a.scale))},
                                      {"fill", cuda::literal(float(a.fill))},
                                      {"inverted", a.keepInverted ? "true" : "false"}}) +
                 cuda::sizeCheck<Params>();
    out.run = [&a](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        Geometry const g = geometryOf(a, args.inputs);
        Params p;
        p.q = args.inputs[0].data;
        p.k = args.inputs[1].data;
        p.v = args.inputs[2].data;
        p.mask = g.maskInput >= 0 ? args.inputs[size_t(g.maskInput)].data : nullptr;
        p.keep = g.keepInput >= 0 ? args.inputs[size_t(g.keepInput)].data : nullptr;
        p.y = args.outputs[0].data;
        p.at[0] = g.q;
        p.at[1] = g.k;
        p.at[2] = g.v;
        p.at[3] = g.mask;
        p.at[4] = g.keep;
        p.heads = a.heads;
        p.rows = g.rows;
        p.columns = g.columns;
        p.size = a.size;
        p.valueSize = a.valueSize;
        int64_t const chunks = blocksFor(a.valueSize, kThreads);
        p.chunks = cuda::divBy(chunks);
        p.rowCount = cuda::divBy(g.rows);
        p.headCount = cuda::divBy(a.heads);
        return launch(0, g.batch * a.heads * g.rows * chunks, kThreads, p);
    };
    return out;
}

constexpr CudnnTactic kCudnn{"attention_f16_cudnn", 1};
constexpr CudaTactic kPlain{"attention_plain_cuda", 1, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kF16Wgmma, &kF16Mma, &kTf32Mma, &kF32Mma, &kCudnn, &kPlain};
    return kList;
}

} // namespace tw::ops::attention
