// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/non_zero/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::non_zero {

namespace {

constexpr int kThreads = 1024;

struct Params
{
    void const* x = nullptr;
    void *y = nullptr, *found = nullptr; // found: how many there are, u64
    uint64_t count = 0, n = 0;           // n: columns of y, 0 while they are counted
    cuda::Div dim[kMaxRank];             // of x, the last running fastest
    int32_t rank = 0, pad = 0;
};

// One block goes through x in order: plain. First it counts; when n is known it writes.
constexpr char const* kText = R"(
struct Params { void const* x; void *y, *found; u64 count, n; Div dim[8]; i32 rank, pad; };
TW_KERNEL non_zero(const __grid_constant__ Params p)
{
    __shared__ u32 before[32];
    u64 column = 0; // of the first element of this round
    u32 const lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (u64 first = 0; first < p.count; first += blockDim.x) {
        u64 const i = first + threadIdx.x;
        bool const hit = i < p.count && load<$number$>(static_cast<$t$ const*>(p.x)[i]) != 0;
        u32 const votes = __ballot_sync(0xffffffffu, hit);
        __syncthreads();
        if (lane == 0) before[warp] = __popc(votes);
        __syncthreads();
        u32 at = __popc(votes & ((1u << lane) - 1)), all = 0;
        for (u32 w = 0; w < 32; ++w) {
            if (w < warp) at += before[w];
            all += before[w];
        }
        if (hit && p.n) {
            idx rest = idx(i);
            for (int d = p.rank - 1; d >= 0; --d) {
                Div const& size = p.dim[8 - p.rank + d];
                idx const q = divide(rest, size);
                static_cast<i32*>(p.y)[u64(d) * p.n + column + at] = i32(rest - q * idx(size.d));
                rest = q;
            }
        }
        column += all;
    }
    if (!p.n && threadIdx.x == 0) *static_cast<u64*>(p.found) = column;
}
)";

// The size of y is known only when the first pass is through: the run waits for it.
Result<void> run(CudaLaunch const& launch, RunArgs& args)
{
    TensorRef const& x = args.inputs[0];
    TensorRef& y = args.outputs[0];
    Params p;
    p.x = x.data;
    p.y = y.data;
    p.found = args.workspace;
    p.count = uint64_t(x.count());
    p.rank = x.dims.rank;
    for (int d = 0; d < x.dims.rank; ++d)
        p.dim[kMaxRank - x.dims.rank + d] = cuda::divBy(x.dims[d]);
    TW_TRY(launch(0, 1, kThreads, p));
    uint64_t found = 0;
    cuda::Driver const& driver = launch.device().driver();
    TW_CUDA(driver, cuMemcpyDtoHAsync(&found, cuda::addressOf(args.workspace), sizeof(found), launch.stream()));
    TW_CUDA(driver, cuStreamSynchronize(launch.stream()));
    y.dims[1] = int64_t(found);
    p.n = found;
    return found > 0 ? launch(0, 1, kThreads, p) : Result<void>();
}

CudaKernels generate(Problem const& problem, Config const&)
{
    DataType const t = problem.inputs[0].type;
    CudaKernels out;
    out.wide = isWide(problem);
    out.names = {"non_zero"};
    out.source = cuda::expand(kText, {{"t", cuda::storageOf(t)}, {"number", isFloating(t) ? "float" : "int"}}) +
                 cuda::sizeCheck<Params>();
    out.run = run;
    out.workspace = [](std::span<TensorRef const>, std::span<TensorRef const>) { return int64_t(sizeof(uint64_t)); };
    return out;
}

constexpr CudaTactic kPlain{"non_zero_plain_cuda", 1, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::non_zero
