// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/pooling/cuda_windows.h"
#include "ops/pooling/op.h"
#include "ops/pooling/pooling_params.h"

namespace tw::ops::pooling {

Support supportsWindows(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    if (a.kind == Kind::kMaxAverageBlend)
        return Support::no("does not blend maximum and average");
    if (a.window.size() != 2)
        return Support::no("takes 2-D windows only");
    if (p.target.cuda && p.target.cuda->capability < 80)
        return Support::no("needs a GPU of compute capability 8.0 or later");
    constexpr int64_t kLimit = int64_t(1) << 15;
    Geometry const g = pooling::geometryOf(p, true);
    for (int i = 1; i < 3; ++i)
        if (std::max({g.window[i], g.stride[i], g.before[i], g.after[i], g.in[i], g.out[i]}) >= kLimit)
            return Support::no("takes windows and sizes below 32768");
    return isWide(p) ? Support::no("counts in 32 bits") : Support::yes();
}

Geometry geometryOf(Problem const& p, bool atMaximum)
{
    TensorSpec const &x = p.inputs[0], &y = p.outputs[0];
    return geometryOf(p.node->attrsAs<Attrs>(), atMaximum ? x.maxDims : x.dims, atMaximum ? y.maxDims : y.dims);
}

std::string cellsOf(Problem const& p)
{
    bool const averages = p.node->attrsAs<Attrs>().kind == Kind::kAverage;
    return cuda::type("T", cuda::storageOf(p.inputs[0].type)) + cuda::flag("AVERAGES", averages) +
           cuda::include(isNarrowFloat(p.inputs[0].type) && !averages ? "ops/pooling/pooling_cells_pairs.cuh"
                                                                      : "ops/pooling/pooling_cells_singles.cuh");
}

std::string windowOf(Attrs const& a)
{
    return cuda::flag("EXCLUDES", a.excludePadding) + cuda::constant("R", a.window[0]) +
           cuda::constant("S", a.window[1]) + cuda::constant("STEP_H", a.strides[0]) +
           cuda::constant("STEP_W", a.strides[1]);
}

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
