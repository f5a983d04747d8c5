// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/deformable_attention/op.h"

namespace tw::ops::deformable_attention {

Result<void> reference(RefContext& ctx)
{
    TensorRef const &value = ctx.in(kValue), &shapes = ctx.in(kShapes), &starts = ctx.in(kStarts),
                    &locations = ctx.in(kLocations), &weights = ctx.in(kWeights), &y = ctx.out();
    int64_t const rows = value.dims[1], heads = value.dims[2], size = value.dims[3], queries = y.dims[1],
                  levels = weights.dims[3], points = weights.dims[4];
    for (int64_t i = 0; i < y.count(); ++i) {
        int64_t const d = i % size, m = i / size % heads, n = i / size / heads / queries;
        double sum = 0;
        for (int64_t j = 0; j < levels * points; ++j) {
            int64_t const l = j / points, at = i / size * levels * points + j;
            int64_t const h = shapes.getInt(2 * l), w = shapes.getInt(2 * l + 1), start = starts.getInt(l);
            // In FP32, as kernels have them.
            double const x = std::fma(float(locations.get(2 * at)), float(w), -0.5F);
            double const v = std::fma(float(locations.get(2 * at + 1)), float(h), -0.5F);
            if (!(x > -1 && v > -1 && x < double(w) && v < double(h)))
                continue;
            for (int k = 0; k < 4; ++k) {
                double const column = std::floor(x) + k % 2, line = std::floor(v) + k / 2;
                if (column < 0 || line < 0 || column >= double(w) || line >= double(h))
                    continue;
                int64_t const row = start + int64_t(line) * w + int64_t(column);
                if (row >= 0 && row < rows)
                    sum += weights.get(at) * (1 - std::fabs(x - column)) * (1 - std::fabs(v - line)) *
                           value.get(((n * rows + row) * heads + m) * size + d);
            }
        }
        y.set(i, sum);
    }
    return {};
}

} // namespace tw::ops::deformable_attention
