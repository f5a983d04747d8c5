// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda_tactic.h"
#include "ops/softmax/op.h"

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

constexpr CudaTactic kPlain{"softmax_plain_cuda", 1, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::softmax
