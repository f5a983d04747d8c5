// SPDX-License-Identifier: Apache-2.0
#include "ops/topk/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::topk {

namespace {

constexpr int kThreads = 256;

struct Params
{
    void const* x = nullptr;
    void *values = nullptr, *indices = nullptr;
    uint64_t n = 0;
    int64_t k = 0;
    cuda::Div inner;
};

// A block for each slice and for each kThreads of its elements: an element's place is the number of elements that come
// before it. n comparisons for each element: plain.
constexpr char const* kText = R"(
struct Params { void const* x; void *values, *indices; u64 n; i64 k; Div inner; };
typedef $t$ T;
// NaN is larger than all; equal elements stay in order.
TW_INLINE bool less(float a, float b) { return b != b ? a == a : a < b; }
TW_INLINE bool isBefore(float a, idx i, float b, idx j)
{
    return $before$ || (!($after$) && i < j);
}
TW_KERNEL topk(const __grid_constant__ Params p)
{
    __shared__ float chunk[$threads$];
    idx const slice = blockIdx.x, o = divide(slice, p.inner), i = slice - o * idx(p.inner.d);
    idx const step = idx(p.inner.d), n = idx(p.n);
    T const* const x = static_cast<T const*>(p.x) + o * n * step + i;
    idx const j = blockIdx.y * $threads$ + threadIdx.x;
    float const mine = j < n ? load<float>(x[j * step]) : 0;
    idx place = 0;
    for (idx first = 0; first < n; first += $threads$) {
        idx const other = first + threadIdx.x;
        __syncthreads();
        if (other < n) chunk[threadIdx.x] = load<float>(x[other * step]);
        __syncthreads();
        idx const many = min(n - first, idx($threads$));
        for (idx q = 0; q < many; ++q) place += isBefore(chunk[q], first + q, mine, j);
    }
    if (j < n && place < idx(p.k)) {
        idx const at = (o * idx(p.k) + place) * step + i;
        static_cast<T*>(p.values)[at] = x[j * step];
        static_cast<i32*>(p.indices)[at] = i32(j);
    }
}
)";

Support supports(Problem const& p)
{
    constexpr int64_t kMost = int64_t(65535) * kThreads;
    int const axis = int(p.node->attrsAs<Attrs>().axis);
    if (p.inputs[0].maxDims[axis] > kMost)
        return Support::no("takes at most " + std::to_string(kMost) + " elements along the axis");
    return Support::yes();
}

CudaKernels generate(Problem const& problem, Config const&)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    bool const isMax = a.kind == Kind::kMax;
    CudaKernels out;
    out.wide = isWide(problem);
    out.names = {"topk"};
    out.source = cuda::expand(kText, {{"t", cuda::storageOf(problem.inputs[0].type)},
                                      {"before", isMax ? "less(b, a)" : "less(a, b)"},
                                      {"after", isMax ? "less(a, b)" : "less(b, a)"},
                                      {"threads", std::to_string(kThreads)}}) +
                 cuda::sizeCheck<Params>();
    out.run = [&a](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const& x = args.inputs[0];
        int const axis = int(a.axis);
        int64_t const inner = x.dims.volume(axis + 1, x.dims.rank);
        Params p;
        p.x = x.data;
        p.values = args.outputs[0].data;
        p.indices = args.outputs[1].data;
        p.n = uint64_t(x.dims[axis]);
        p.k = a.k;
        p.inner = cuda::divBy(inner);
        return launch.grid(0, x.dims.volume(0, axis) * inner, blocksFor(x.dims[axis], kThreads), 1, kThreads, p);
    };
    return out;
}

constexpr CudaTactic kPlain{"topk_plain_cuda", 1, generate, supports};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::topk
