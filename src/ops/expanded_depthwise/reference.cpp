// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"

#include "ops/expanded_depthwise/op.h"

namespace tw::ops::expanded_depthwise {

// A pixel of z is worked out when the first element that needs it is.
Result<void> reference(RefContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    TensorRef const &x = ctx.in(0), &w1 = ctx.in(1), &b1 = ctx.in(2), &w2 = ctx.in(3), &b2 = ctx.in(4), &y = ctx.out();
    KernelWindowGeometry const g =
        geometryOf(WindowKind::kConvolution, a, {y.dims[0], y.dims[1], x.dims[2], x.dims[3]}, w2.dims, y.dims);
    int64_t const h = x.dims[2], w = x.dims[3], channels = x.dims[1], m = y.dims[1];
    Tensor const z(DataType::kFloat, {y.dims[0], m, h, w});
    std::vector<bool> known(size_t(z.count()));
    auto expanded = [&](int64_t n, int64_t k, int64_t row, int64_t column) -> Result<double> {
        int64_t const at = ((n * m + k) * h + row) * w + column;
        if (!known[size_t(at)]) {
            double sum = b1.get(k);
            for (int64_t c = 0; c < channels; ++c)
                sum += w1.get(k * channels + c) * x.get(((n * channels + c) * h + row) * w + column);
            TensorRef one = z.ref();
            one.dims = {1};
            one.data = z.ref().as<float>() + at;
            one.set(0, sum);
            TW_TRY(activateReference(a.inner, one));
            known[size_t(at)] = true;
        }
        return z.ref().get(at);
    };
    for (int64_t i = 0; i < y.count(); ++i) {
        if (!ctx.wants(i))
            continue;
        int64_t const ox = i % y.dims[3], oy = i / y.dims[3] % y.dims[2], k = i / y.dims[3] / y.dims[2] % m;
        int64_t const n = i / y.dims[3] / y.dims[2] / m;
        double sum = b2.get(k);
        for (int64_t r = 0; r < g.window[1]; ++r)
            for (int64_t s = 0; s < g.window[2]; ++s) {
                int64_t const row = oy * g.stride[1] - g.before[1] + r * g.dilation[1];
                int64_t const column = ox * g.stride[2] - g.before[2] + s * g.dilation[2];
                if (row < 0 || row >= h || column < 0 || column >= w)
                    continue;
                TW_ASSIGN(double const value, expanded(n, k, row, column));
                sum += w2.get((k * g.window[1] + r) * g.window[2] + s) * value;
            }
        y.set(i, sum);
    }
    return activateReference(a.outer, y);
}

} // namespace tw::ops::expanded_depthwise
