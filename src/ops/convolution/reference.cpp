// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"

#include "ops/convolution/op.h"

namespace tw::ops::convolution {

namespace {

void forward(RefContext& ctx, Geometry const& g, ReferenceEnd const& end)
{
    Numbers const x(ctx, 0), w(ctx, 1);
    int64_t const groupC = g.c / g.groups, groupK = g.k / g.groups;
    ctx.forEachWanted([&](int64_t at) {
        int64_t const o2 = at % g.out[2], o1 = at / g.out[2] % g.out[1], o0 = at / g.out[2] / g.out[1] % g.out[0];
        int64_t const plane = at / g.out[2] / g.out[1] / g.out[0], k = plane % g.k, n = plane / g.k;
        double sum = end.begin(k);
        for (int64_t c = 0; c < groupC; ++c) {
            int64_t const channel = k / groupK * groupC + c;
            for (int64_t f0 = 0; f0 < g.window[0]; ++f0)
                for (int64_t f1 = 0; f1 < g.window[1]; ++f1) {
                    int64_t const i0 = o0 * g.stride[0] - g.before[0] + f0 * g.dilation[0];
                    int64_t const i1 = o1 * g.stride[1] - g.before[1] + f1 * g.dilation[1];
                    if (i0 < 0 || i0 >= g.in[0] || i1 < 0 || i1 >= g.in[1])
                        continue;
                    int64_t const xRow = (((n * g.c + channel) * g.in[0] + i0) * g.in[1] + i1) * g.in[2];
                    int64_t const wRow = (((k * groupC + c) * g.window[0] + f0) * g.window[1] + f1) * g.window[2];
                    for (int64_t f2 = 0; f2 < g.window[2]; ++f2) {
                        int64_t const i2 = o2 * g.stride[2] - g.before[2] + f2 * g.dilation[2];
                        if (i2 >= 0 && i2 < g.in[2])
                            sum += x[xRow + i2] * w[wRow + f2];
                    }
                }
        }
        end.put(at, k, sum);
    });
}

// The input i that window position f brings to output o, or -1.
int64_t inputAt(Geometry const& g, int axis, int64_t o, int64_t f)
{
    int64_t const scaled = o + g.before[axis] - f * g.dilation[axis];
    if (scaled < 0 || scaled % g.stride[axis] != 0 || scaled / g.stride[axis] >= g.in[axis])
        return -1;
    return scaled / g.stride[axis];
}

void transposed(RefContext& ctx, Geometry const& g, ReferenceEnd const& end)
{
    Numbers const x(ctx, 0), w(ctx, 1);
    int64_t const groupC = g.c / g.groups, groupK = g.k / g.groups;
    int64_t at = 0; // element of y
    for (int64_t n = 0; n < g.batch; ++n)
        for (int64_t k = 0; k < g.k; ++k)
            for (int64_t o0 = 0; o0 < g.out[0]; ++o0)
                for (int64_t o1 = 0; o1 < g.out[1]; ++o1)
                    for (int64_t o2 = 0; o2 < g.out[2]; ++o2, ++at) {
                        if (!ctx.wants(at))
                            continue;
                        double sum = end.begin(k);
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
                                        sum += x[xi] * w[wi];
                                    }
                                }
                        end.put(at, k, sum);
                    }
}

} // namespace

Result<void> reference(RefContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    Geometry const g = geometryOf(a, ctx.in(0).dims, ctx.in(1).dims, ctx.out().dims);
    ReferenceEnd const end(ctx, a.epilogue);
    if (a.transposed)
        transposed(ctx, g, end);
    else
        forward(ctx, g, end);
    return end.finish();
}

} // namespace tw::ops::convolution
