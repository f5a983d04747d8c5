// SPDX-License-Identifier: Apache-2.0
#include "ops/shape/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::shape {

namespace {

struct Params
{
    void* y = nullptr;
    int32_t dims[kMaxRank] = {};
};

constexpr char const* kText = R"(
struct Params { void* y; i32 dims[8]; };
TW_KERNEL shape(const __grid_constant__ Params p) { static_cast<i32*>(p.y)[threadIdx.x] = p.dims[threadIdx.x]; }
)";

CudaKernels generate(Problem const&, Config const&)
{
    CudaKernels out;
    out.names = {"shape"};
    out.source = kText + cuda::sizeCheck<Params>();
    out.run = [](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        Extents const& x = args.inputs[0].dims;
        Params p;
        p.y = args.outputs[0].data;
        for (int d = 0; d < x.rank; ++d)
            p.dims[d] = int32_t(x[d]);
        return launch(0, 1, x.rank, p);
    };
    return out;
}

constexpr CudaTactic kPlain{"shape_plain_cuda", 1, generate};

} // namespace

std::span<Tactic const* const> cudaTactics()
{
    static constexpr Tactic const* kList[] = {&kPlain};
    return kList;
}

} // namespace tw::ops::shape
