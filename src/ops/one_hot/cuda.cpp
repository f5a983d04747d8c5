// SPDX-License-Identifier: Apache-2.0
#include "ops/one_hot/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::one_hot {

namespace {

constexpr int kThreads = 256;

struct Params
{
    void const *indices = nullptr, *values = nullptr; // values: [off, on]
    void* y = nullptr;
    uint64_t count = 0;
    cuda::Div inner, depth; // y as [outer, depth, inner]
};

constexpr char const* kText = R"(
struct Params { void const *indices, *values; void* y; u64 count; Div inner, depth; };
TW_KERNEL one_hot(const __grid_constant__ Params p)
{
    idx const i = threadIndex();
    if (i >= p.count) return;
    idx const row = divide(i, p.inner), outer = divide(row, p.depth);
    idx const at = i - row * idx(p.inner.d);
    i64 const d = i64(row - outer * idx(p.depth.d));
    i64 const index = static_cast<i32 const*>(p.indices)[outer * idx(p.inner.d) + at];
    bool const on = index == d || index + i64(p.depth.d) == d;
    static_cast<$unit$*>(p.y)[i] = static_cast<$unit$ const*>(p.values)[on];
}
)";

CudaKernels generate(Problem const& problem, Config const&)
{
    CudaKernels out;
    out.wide = isWide(problem);
    out.names = {"one_hot"};
    out.source =
        cuda::expand(kText, {{"unit", cuda::unitOf(sizeOf(problem.outputs[0].type))}}) + cuda::sizeCheck<Params>();
    out.run = [&a = problem.node->attrsAs<Attrs>()](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const& y = args.outputs[0];
        int const axis = a.axisIn(y.dims.rank);
        Params p;
        p.indices = args.inputs[0].data;
        p.values = args.inputs[1].data;
        p.y = y.data;
        p.count = uint64_t(y.count());
        p.inner = cuda::divBy(y.dims.volume(axis + 1, y.dims.rank));
        p.depth = cuda::divBy(y.dims[axis]);
        return launch(0, blocksFor(y.count(), kThreads), kThreads, p);
    };
    return out;
}

constexpr CudaTactic kPlain{"one_hot_plain_cuda", 1, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::one_hot
