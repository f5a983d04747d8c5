// SPDX-License-Identifier: Apache-2.0
#include "ops/pooling/cuda_windows.h"

#include <algorithm>

namespace tw::ops::pooling {

Support supportsWindows(Problem const& p)
{
    auto const& a = p.node->attrsAs<Attrs>();
    if (a.kind == Kind::kMaxAverageBlend)
        return Support::no("does not blend maximum and average");
    if (a.window.size() != 2)
        return Support::no("takes 2-D windows only");
    if (p.cuda && p.cuda->capability < 80)
        return Support::no("needs a GPU of compute capability 8.0 or later");
    constexpr int64_t kLimit = int64_t(1) << 15;
    Geometry const g = geometryOf(p, true);
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

} // namespace tw::ops::pooling
