// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"
#include "ops/deconvolution/op.h"

namespace tw::ops::deconvolution {

namespace {

// The input i that window position f brings to output o, or -1.
int64_t inputAt(Geometry const& g, int axis, int64_t o, int64_t f)
{
    int64_t const scaled = o + g.before[axis] - f * g.dilation[axis];
    if (scaled < 0 || scaled % g.stride[axis] != 0 || scaled / g.stride[axis] >= g.in[axis])
        return -1;
    return scaled / g.stride[axis];
}

} // namespace

Result<void> reference(RefContext& ctx)
{
    TensorRef const &x = ctx.in(0), &w = ctx.in(1), &y = ctx.out();
    Geometry const g = geometryOf(ctx.attrs<Attrs>(), x.dims, w.dims, y.dims);
    int64_t const groupC = g.c / g.groups, groupK = g.k / g.groups;
    int64_t at = 0; // element of y
    for (int64_t n = 0; n < g.batch; ++n)
        for (int64_t k = 0; k < g.k; ++k)
            for (int64_t o0 = 0; o0 < g.out[0]; ++o0)
                for (int64_t o1 = 0; o1 < g.out[1]; ++o1)
                    for (int64_t o2 = 0; o2 < g.out[2]; ++o2, ++at) {
                        if (!ctx.wants(at))
                            continue;
                        double sum = ctx.has(2) ? ctx.in(2).get(k) : 0.0;
                        for (int64_t f0 = 0; f0 < g.window[0]; ++f0)
                            for (int64_t f1 = 0; f1 < g.window[1]; ++f1)
                                for (int64_t f2 = 0; f2 < g.window[2]; ++f2) {
                                    int64_t const i0 = inputAt(g, 0, o0, f0), i1 = inputAt(g, 1, o1, f1),
                                                  i2 = inputAt(g, 2, o2, f2);
                                    if (i0 < 0 || i1 < 0 || i2 < 0)
                                        continue;
                                    for (int64_t c = k / groupK * groupC; c < (k / groupK + 1) * groupC; ++c) {
                                        int64_t const xi =
                                            (((n * g.c + c) * g.in[0] + i0) * g.in[1] + i1) * g.in[2] + i2;
                                        int64_t const wi =
                                            (((c * groupK + k % groupK) * g.window[0] + f0) * g.window[1] + f1) *
                                                g.window[2] +
                                            f2;
                                        sum += x.get(xi) * w.get(wi);
                                    }
                                }
                        y.set(at, sum);
                    }
    return {};
}

} // namespace tw::ops::deconvolution
