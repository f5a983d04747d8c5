// SPDX-License-Identifier: Apache-2.0
// y[o] = x at the coordinate c(o) of each axis: the nearest element, or a linear or cubic mix of the elements around
// it.
//   x [a...] of rank >= 1, f32, f16 or i8 (mixes are rounded half to even); y [b...] of the same rank.
// b comes from exactly one of: output_dims (-1: as in x); scales (b = floor(a * scale)); input 1, an i32 tensor of
// `rank` elements. c(o) for sizes a and b:  align corners o (a - 1) / (b - 1), 0 when b = 1;  asymmetric o / s;  half
// pixel (o + 1/2) / s - 1/2;  with s = b / a, or the scale itself where scales are given. Selector kUpper: 0 when b
// = 1. A scale is read as the simplest fraction that rounds to the same float: 10 elements times 0.7f are 7. Linear
// mixes along the last three axes at most, cubic along the last two; other axes keep their size. An element of weight
// zero takes no part (it may be NaN); beyond its ends x repeats its edge, or (excludeOutside) counts as absent.
#pragma once

#include "ir/attrs.h"
#include "ir/op_def.h"

namespace tw::ops::resize {

enum class Mode : int32_t // same numbers as nvinfer1::InterpolationMode
{
    kNearest = 0,
    kLinear = 1,
    kCubic = 2,
};
enum class Coordinates : int32_t // as nvinfer1::ResizeCoordinateTransformation
{
    kAlignCorners = 0,
    kAsymmetric = 1,
    kHalfPixel = 2,
};
enum class Selector : int32_t // as nvinfer1::ResizeSelector
{
    kFormula = 0,
    kUpper = 1,
};
enum class Rounding : int32_t // as nvinfer1::ResizeRoundMode
{
    kHalfUp = 0,
    kHalfDown = 1,
    kFloor = 2,
    kCeil = 3,
};

struct Attrs : ir::AttrsOf<Attrs>
{
    Mode mode = Mode::kNearest;
    Coordinates coordinates = Coordinates::kAsymmetric;
    Selector selector = Selector::kFormula;
    Rounding rounding = Rounding::kFloor;
    float cubicCoeff = -0.75f;
    bool excludeOutside = false;
    std::vector<int64_t> outputDims; // one for each axis, or empty
    std::vector<double> scales;      // one for each axis, or empty; they hold floats

    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "mode", mode);
        v.field(2, "coordinates", coordinates);
        v.field(3, "selector", selector);
        v.field(4, "rounding", rounding);
        v.field(5, "cubic_coeff", cubicCoeff);
        v.field(6, "exclude_outside", excludeOutside);
        v.field(7, "output_dims", outputDims);
        v.field(8, "scales", scales);
    }
};

struct Fraction
{
    int64_t over = 1, under = 1; // under > 0
};
// False when scale is not a positive number that a fraction of two numbers up to 2^24 can stand for.
bool fractionOf(double scale, Fraction& out);

struct Axis
{
    int64_t in = 1, out = 1;
    Fraction scale;
};
Axis axisOf(Attrs const& a, Extents const& x, Extents const& y, int axis);

} // namespace tw::ops::resize
