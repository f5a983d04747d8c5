// SPDX-License-Identifier: Apache-2.0
#include "ops/lrn/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::lrn {

namespace {

constexpr int kThreads = 256;

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    uint64_t count = 0;
    cuda::Div plane, channels;
};

constexpr char const* kText = R"(
struct Params { void const* x; void* y; u64 count; Div plane, channels; };
TW_KERNEL lrn(const __grid_constant__ Params p)
{
    idx const i = threadIndex();
    if (i >= p.count) return;
    idx const row = divide(i, p.plane), n = divide(row, p.channels);
    i64 const c = i64(row - n * idx(p.channels.d)), reach = $reach$;
    i64 const first = c < reach ? 0 : c - reach;
    i64 const last = c + reach < i64(p.channels.d) ? c + reach : i64(p.channels.d) - 1;
    $t$ const* const x = static_cast<$t$ const*>(p.x);
    float sum = 0;
    for (i64 j = first; j <= last; ++j) {
        float const v = load<float>(x[i64(i) + (j - c) * i64(p.plane.d)]);
        sum += v * v;
    }
    static_cast<$t$*>(p.y)[i] = store<$t$>(load<float>(x[i]) / pow($k$ + $alpha$ * sum, $beta$));
}
)";

CudaKernels generate(Problem const& problem, Config const&)
{
    auto const& a = problem.node->attrsAs<Attrs>();
    CudaKernels out;
    out.wide = isWide(problem);
    out.names = {"lrn"};
    out.source = cuda::expand(kText, {{"reach", std::to_string(a.window / 2) + "ll"},
                                      {"t", cuda::storageOf(problem.outputs[0].type)},
                                      {"k", cuda::literal(a.k)},
                                      {"alpha", cuda::literal(float(double(a.alpha) / double(a.window)))},
                                      {"beta", cuda::literal(a.beta)}}) +
                 cuda::sizeCheck<Params>();
    out.run = [](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        int const rank = x.dims.rank;
        Params p;
        p.x = x.data;
        p.y = y.data;
        p.count = uint64_t(y.count());
        p.plane = cuda::divBy(x.dims.volume(rank - 2, rank));
        p.channels = cuda::divBy(x.dims[rank - 3]);
        return launch(0, blocksFor(y.count(), kThreads), kThreads, p);
    };
    return out;
}

constexpr CudaTactic kPlain{"lrn_plain_cuda", 1, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::lrn
