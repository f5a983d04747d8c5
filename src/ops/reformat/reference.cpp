// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "ops/reformat/op.h"

namespace tw::ops::reformat {

Result<void> reference(RefContext& ctx)
{
    TensorRef const &x = ctx.in(0), &y = ctx.out();
    if (x.type == y.type && x.type != DataType::kBool && x.format == Format::kLinear && y.format == Format::kLinear) {
        std::memcpy(y.data, x.data, size_t(y.sizeBytes()));
        return {};
    }
    for (int64_t i = 0; i < y.count(); ++i)
        y.set(i, x.get(i));
    return {};
}

} // namespace tw::ops::reformat
