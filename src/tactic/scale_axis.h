// SPDX-License-Identifier: Apache-2.0
// Scales of quantize and dequantize: input 1, one number for all of input 0 (axis -1), or one for each index along an
// axis of it.
#pragma once

#include "base/extents.h"
#include "ir/infer.h"

namespace tw::ops {

// Rank, type and count of the scale.
Result<void> checkScaleAxis(ir::InferContext const& ctx, int32_t axis);

// x as [outer, scales, inner]: scale k belongs to all elements [., k, .].
struct ScaleGeometry
{
    int64_t outer = 1, scales = 1, inner = 1;
};
inline ScaleGeometry scaleGeometry(Extents const& x, int32_t axis)
{
    if (axis < 0)
        return {1, 1, x.volume()};
    return {x.volume(0, axis), x[axis], x.volume(axis + 1, x.rank)};
}

} // namespace tw::ops
