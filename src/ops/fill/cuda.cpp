// SPDX-License-Identifier: Apache-2.0
#include "ops/fill/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::fill {

namespace {

constexpr int kThreads = 256;

struct Params
{
    void* y = nullptr;
    void const *alphaInput = nullptr, *betaInput = nullptr; // null: the numbers below
    uint64_t count = 0, state = 0;
    double alpha = 0, beta = 0;
    cuda::Div dim[kMaxRank]; // of y, the last running fastest
    int32_t rank = 0, pad = 0;
};

constexpr char const* kText = R"(
struct Params {
    void* y; void const *alphaInput, *betaInput; u64 count, state; double alpha, beta; Div dim[8]; i32 rank, pad;
};
typedef $t$ T;
typedef $number$ C; // double, or unsigned integers, which wrap
TW_INLINE C number(T v) { return $load$; }
TW_INLINE C fromDouble(double v) { return $fromDouble$; }
TW_INLINE C alphaOf(Params const& p)
{
    return p.alphaInput ? number(*static_cast<T const*>(p.alphaInput)) : fromDouble(p.alpha);
}
TW_INLINE C betaOf(Params const& p, int d)
{
    return p.betaInput ? number(static_cast<T const*>(p.betaInput)[d]) : fromDouble(p.beta);
}
TW_INLINE u64 randomBits(u64 counter)
{
    u64 z = (counter + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}
TW_INLINE double uniformAt(u64 counter) { return double(randomBits(counter) >> 40) * 0x1p-24; }
TW_INLINE double positiveAt(u64 counter) { return double((randomBits(counter) >> 11) + 1) * 0x1p-53; }
TW_KERNEL fill(const __grid_constant__ Params p)
{
    idx const i = threadIndex();
    if (i >= p.count) return;
    C v = alphaOf(p);
#if $operation$ == 0
    idx rest = i;
    for (int d = p.rank - 1; d >= 0; --d) {
        Div const& size = p.dim[8 - p.rank + d];
        idx const q = divide(rest, size);
        v += betaOf(p, d) * C(rest - q * idx(size.d));
        rest = q;
    }
#elif $operation$ == 1
    v = v + uniformAt(p.state + i) * (betaOf(p, 0) - v);
#else
    u64 const k = p.state + 2 * u64(i);
    v = v + betaOf(p, 0) * sqrt(-2 * log(positiveAt(k))) * cospi(2 * uniformAt(k + 1));
#endif
    static_cast<T*>(p.y)[i] = $store$;
}
)";

Result<void> run(Attrs const& a, CudaLaunch const& launch, RunArgs& args)
{
    TensorRef const& y = args.outputs[0];
    auto optional = [&](size_t i) { return i < args.inputs.size() ? args.inputs[i].data : nullptr; };
    Params p;
    p.y = y.data;
    p.alphaInput = optional(1);
    p.betaInput = optional(2);
    p.count = uint64_t(y.count());
    p.alpha = a.alpha;
    p.beta = a.beta;
    p.rank = y.dims.rank;
    for (int d = 0; d < y.dims.rank; ++d)
        p.dim[kMaxRank - y.dims.rank + d] = cuda::divBy(y.dims[d]);
    if (a.operation != Operation::kLinspace && args.randomState) {
        p.state = *args.randomState;
        *args.randomState += p.count * (a.operation == Operation::kRandomNormal ? 2 : 1);
    }
    return launch(0, blocksFor(y.count(), kThreads), kThreads, p);
}

CudaKernels generate(Problem const& problem, Config const&)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    DataType const t = problem.outputs[0].type;
    bool const whole = t == DataType::kInt32;
    CudaKernels out;
    out.wide = isWide(problem);
    out.names = {"fill"};
    out.source = cuda::expand(kText, {{"t", cuda::storageOf(t)},
                                      {"number", whole ? "u32" : "double"},
                                      {"load", whole ? "u32(v)" : "load<double>(v)"},
                                      {"fromDouble", whole ? "u32(u64(i64(v)))" : "v"},
                                      {"operation", std::to_string(int(a.operation))},
                                      {"store", whole ? "i32(v)" : "store<T>(v)"}}) +
                 cuda::sizeCheck<Params>();
    out.run = [&a](CudaLaunch const& launch, RunArgs& args) { return run(a, launch, args); };
    return out;
}

constexpr CudaTactic kPlain{"fill_plain_cuda", 1, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::fill
