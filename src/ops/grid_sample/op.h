// SPDX-License-Identifier: Apache-2.0
// y[n, c, i, j] = x[n, c] at the point grid[n, i, j] = (horizontal, vertical), each from -1 (the first edge) to 1.
//   x [n, c, h, w], grid [n, p, q, 2]: f32 or f16, each for itself; y [n, c, p, q] of x's type.
// A coordinate g of a dimension of `size` pixels is the place (g + 1) / 2 (size - 1) with alignCorners, where -1 and 1 are
// the centres of the first and last pixel, and ((g + 1) size - 1) / 2 without, where they are the outer edges. Places are
// floats, rounded after each operation, so that every device takes the same pixels.
//   nearest  the pixel at the place rounded half to even
//   linear   the 2 x 2 pixels around, cubic the 4 x 4 (Catmull-Rom weights with a = -0.75)
// Pixels outside are 0 (fill), the one at the edge (clamp) or mirrored (reflect, with alignCorners at the centres of the
// edge pixels, else at the edges). Nearest and linear move the place inside before they look for pixels; cubic moves each
// of its pixels. NaN and, but for fill, infinities lead to some pixel or to NaN.
#pragma once

#include "ir/attrs.h"
#include "tactic/reference.h"
#include "tactic/tactic.h"

namespace tw::ops::grid_sample {

enum class Interpolation : int32_t // same numbers as nvinfer1::InterpolationMode
{
    kNearest = 0,
    kLinear = 1,
    kCubic = 2,
};

enum class Outside : int32_t // same numbers as nvinfer1::SampleMode
{
    kClamp = 2,
    kFill = 3,
    kReflect = 4,
};

struct Attrs : ir::AttrsOf<Attrs>
{
    Interpolation interpolation = Interpolation::kLinear;
    Outside outside = Outside::kFill;
    bool alignCorners = false;

    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "interpolation", interpolation);
        v.field(2, "outside", outside);
        v.field(3, "align_corners", alignCorners);
    }
    // Pixels along each axis.
    int taps() const { return interpolation == Interpolation::kCubic ? 4 : 1 + int(interpolation); }
};

} // namespace tw::ops::grid_sample
