// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/identity/op.h"

namespace tw::ops::identity {

Result<void> reference(RefContext& ctx)
{
    TensorRef const &x = ctx.in(0), &y = ctx.out();
    for (int64_t i = 0; i < y.count(); ++i) {
        double v = x.get(i);
        if (y.type == DataType::kInt32 || y.type == DataType::kUInt8) {
            double const lo = y.type == DataType::kUInt8 ? 0 : INT32_MIN,
                         hi = y.type == DataType::kUInt8 ? 255 : INT32_MAX;
            v = std::isnan(v) ? 0 : std::trunc(std::fmin(std::fmax(v, lo), hi));
        }
        y.set(i, v);
    }
    return {};
}

} // namespace tw::ops::identity
