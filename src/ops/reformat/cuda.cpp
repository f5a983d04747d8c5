// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda_tactic.h"
#include "ops/reformat/op.h"

namespace tw::ops::reformat {

namespace {

constexpr int kThreads = 256;

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    uint64_t count = 0;
};

// Both sides are linear: a copy.
constexpr char const* kText = R"(
struct Params { void const* x; void* y; u64 count; };
TW_KERNEL reformat(const __grid_constant__ Params p)
{
    idx const i = threadIndex();
    if (i < p.count) static_cast<$unit$*>(p.y)[i] = static_cast<$unit$ const*>(p.x)[i];
}
)";

CudaKernels generate(Problem const& problem, Config const&)
{
    CudaKernels out;
    out.wide = isWide(problem);
    out.names = {"reformat"};
    out.source =
        cuda::expand(kText, {{"unit", cuda::unitOf(sizeOf(problem.outputs[0].type))}}) + cuda::sizeCheck<Params>();
    out.run = [](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const& y = args.outputs[0];
        Params p;
        p.x = args.inputs[0].data;
        p.y = y.data;
        p.count = uint64_t(y.count());
        return launch(0, blocksFor(y.count(), kThreads), kThreads, p);
    };
    return out;
}

constexpr CudaTactic kPlain{"reformat_plain_cuda", 1, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::reformat
