// SPDX-License-Identifier: Apache-2.0
#include "ops/cumulative_sum/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::cumulative_sum {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kManyLines = 16384; // enough of them for a thread each, where neighbours lie side by side

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    uint64_t lines = 0, length = 0;
    cuda::Div inner; // elements from one of a line to the next
};

// A block for a line, or a thread. Floats are summed in double: one line may be long.
constexpr char const* kText = R"(
struct Params { void const* x; void* y; u64 lines, length; Div inner; };
typedef $t$ Element;
typedef $number$ Number;
constexpr bool kReverse = $reverse$, kExclusive = $exclusive$;
constexpr int kEach = 4, kRound = 256 * kEach;
TW_INLINE idx lineBegin(Params const& p, idx line)
{
    idx const o = divide(line, p.inner), inner = idx(p.inner.d);
    return o * idx(p.length) * inner + (line - o * inner);
}
TW_INLINE idx placeOf(Params const& p, idx begin, idx i)
{
    return begin + (kReverse ? idx(p.length) - 1 - i : i) * idx(p.inner.d);
}
TW_INLINE void put(Params const& p, idx at, Number& sum, Number v)
{
    Number const before = sum;
    sum = before + v;
    static_cast<Element*>(p.y)[at] = store<Element>($load$(kExclusive ? before : sum));
}
TW_INLINE Number get(Params const& p, idx at)
{
    return Number(load<$load$>(static_cast<Element const*>(p.x)[at]));
}
TW_KERNEL __launch_bounds__(256) cumulative_sum_blocks(const __grid_constant__ Params p)
{
    __shared__ Number warps[8];
    waitForPrevious();
    releaseDependents();
    idx const begin = lineBegin(p, blockIdx.x), length = idx(p.length);
    u32 const lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    Number carry = 0;
    for (idx first = 0; first < length; first += kRound) {
        idx const mine = first + threadIdx.x * kEach;
        Number v[kEach], own = 0;
#pragma unroll
        for (int k = 0; k < kEach; ++k) {
            v[k] = mine + k < length ? get(p, placeOf(p, begin, mine + k)) : Number(0);
            own += v[k];
        }
#pragma unroll
        for (int d = 1; d < 32; d *= 2) {
            Number const other = __shfl_up_sync(0xffffffffu, own, d);
            if (lane >= d) own += other;
        }
        if (lane == 31) warps[warp] = own;
        Number sum = __shfl_up_sync(0xffffffffu, own, 1);
        if (lane == 0) sum = 0;
        __syncthreads();
        Number all = carry;
#pragma unroll
        for (int w = 0; w < 8; ++w) {
            if (w == warp) sum += all;
            all += warps[w];
        }
        carry = all;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < kEach; ++k)
            if (mine + k < length) put(p, placeOf(p, begin, mine + k), sum, v[k]);
    }
}
TW_KERNEL __launch_bounds__(256) cumulative_sum_threads(const __grid_constant__ Params p)
{
    waitForPrevious();
    releaseDependents();
    idx const line = threadIndex(), length = idx(p.length);
    if (line >= p.lines) return;
    idx const begin = lineBegin(p, line);
    Number sum = 0;
#pragma unroll 4
    for (idx i = 0; i < length; ++i) {
        idx const at = placeOf(p, begin, i);
        put(p, at, sum, get(p, at));
    }
}
)";

CudaKernels generate(Problem const& problem, Config const&)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    DataType const t = problem.outputs[0].type;
    CudaKernels out;
    out.wide = isWide(problem);
    out.isDependent = true;
    out.names = {"cumulative_sum_blocks", "cumulative_sum_threads"};
    out.source = cuda::expand(kText, {{"t", cuda::storageOf(t)},
                                      {"number", isFloating(t) ? "double" : "u32"},
                                      {"load", isFloating(t) ? "double" : "int"},
                                      {"reverse", a.reverse ? "true" : "false"},
                                      {"exclusive", a.exclusive ? "true" : "false"}}) +
                 cuda::sizeCheck<Params>();
    out.run = [axis = int(a.axis)](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        if (y.count() == 0)
            return {};
        int64_t const inner = x.dims.volume(axis + 1, x.dims.rank), lines = x.dims.volume(0, axis) * inner;
        Params p;
        p.x = x.data;
        p.y = y.data;
        p.lines = uint64_t(lines);
        p.length = uint64_t(x.dims[axis]);
        p.inner = cuda::divBy(inner);
        if (inner > 1 && lines >= kManyLines)
            return launch(1, blocksFor(lines, kThreads), kThreads, p);
        return launch(0, lines, kThreads, p);
    };
    return out;
}

constexpr CudaTactic kPlain{"cumulative_sum_plain_cuda", 1, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::cumulative_sum
