// SPDX-License-Identifier: Apache-2.0
// Scales of quantize and dequantize: input 1, one number for all of input 0 (axis -1), or one for each index along an
// axis of it.
#pragma once

#include <algorithm>

#include "base/extents.h"
#include "ir/infer.h"
#include "tactic/blocks.h"

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

// Calls body(at, n, s, step) for runs of at most kBlock elements of x, from `at` on: the scale of element e is s[e step].
template <class Body>
void forEachScaledBlock(ScaleGeometry const& g, float const* scale, Body const& body)
{
    bool const along = g.inner == 1; // a row runs over scales, else over elements of one scale
    int64_t const row = along ? g.scales : g.inner, rows = along ? g.outer : g.outer * g.scales;
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t i = 0; i < row; i += kBlock)
            body(r * row + i, std::min(kBlock, row - i), scale + (along ? i : r % g.scales), along ? 1 : 0);
}

} // namespace tw::ops
