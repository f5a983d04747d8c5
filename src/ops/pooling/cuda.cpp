// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/pooling/cuda_windows.h"
#include "ops/pooling/op.h"
#include "ops/pooling/pooling_params.h"

namespace tw::ops::pooling {

namespace {

constexpr int64_t kWideWindow = int64_t(1) << 29; // windows that reach far out of x

bool isWideWindow(Problem const& problem)
{
    Geometry const g =
        geometryOf(problem.node->attrsAs<Attrs>(), problem.inputs[0].maxDims, problem.outputs[0].maxDims);
    for (int i = 0; i < 3; ++i)
        if (std::max({g.window[i], g.stride[i], g.before[i], g.after[i]}) >= kWideWindow)
            return true;
    return false;
}

std::unique_ptr<CudaKernels> plainKernels(Problem const& problem, Config const&)
{
    auto const& attrs = problem.node->attrsAs<Attrs>();
    DataType const t = problem.outputs[0].type;
    CudaSource source{.text = cuda::type("T", cuda::storageOf(t)) + cuda::type("C", cuda::computeOf(t)) +
                              cuda::constant("KIND", int64_t(attrs.kind)) +
                              cuda::flag("EXCLUDES", attrs.excludePadding) +
                              cuda::number("BLEND", attrs.kind == Kind::kMaxAverageBlend ? attrs.blend : 0) +
                              cuda::include("ops/pooling/pooling.cuh"),
                      .names = {"pooling"},
                      .wide = isWide(problem) || isWideWindow(problem)};
    return kernelsOf(std::move(source), [&attrs](CudaLaunch const& launch, RunArgs& args) -> Result<void> {
        TensorRef const &x = args.inputs[0], &y = args.outputs[0];
        Geometry const g = geometryOf(attrs, x.dims, y.dims);
        Params p{.x = x.data, .y = y.data, .count = uint64_t(y.count())};
        for (int i = 0; i < 3; ++i) {
            p.out[i] = cuda::divBy(g.out[i]);
            p.in[i] = g.in[i];
            p.window[i] = g.window[i];
            p.stride[i] = g.stride[i];
            p.before[i] = g.before[i];
            p.after[i] = g.after[i];
        }
        return launch.each(0, y.count(), p);
    });
}

constexpr CudaTactic kPlain{"pooling_any_plain_cuda", 1, plainKernels};

} // namespace

extern constinit TacticList const cudaTactics = kTactics<kNhwc, kNhwcF32, kNhwcI8, kNchw, kBands, kPlain>;

} // namespace tw::ops::pooling
