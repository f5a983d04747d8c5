// SPDX-License-Identifier: Apache-2.0
// y[I] = x[start + I * stride], for each dimension; y has dimensions `size`. Coordinates outside [0, L) of x: an error
// (strict), modulo L (wrap), the nearest edge (clamp), the fill value (fill), mirrored at the centre of the edge
// elements (reflect).
//   x: any type and rank n. Inputs 1, 2, 3 (optional): start, size, stride, i32 [n], each instead of its attribute.
//   Input 4 (optional, fill only): the fill value, one element of x's type; 0 when not given.
//   A size kWhole of the attribute: as many as x has there.
//   Stride may be negative or 0. A dimension of size 0 is never checked; L = 0 with another size is an error but for
//   fill.
#pragma once

#include "base/extents.h"
#include "base/tensor.h"
#include "ir/attrs.h"
#include "ir/dim.h"

namespace tw::ops::slice {

enum class Mode : int32_t // same numbers as nvinfer1::SampleMode
{
    kStrict = 0,
    kWrap = 1,
    kClamp = 2,
    kFill = 3,
    kReflect = 4,
};

inline constexpr int64_t kWhole = INT64_MIN; // no size that a client can write

struct Attrs : ir::AttrsOf<Attrs>
{
    std::vector<int64_t> start, size, stride; // one for each dimension, where the input is not given
    Mode mode = Mode::kStrict;

    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "start", start);
        v.field(2, "size", size);
        v.field(3, "stride", stride);
        v.field(4, "mode", mode);
    }
};

// Elements [begin, begin + count) of one axis of x, and all of the others.
Attrs partOf(ir::Shape const& x, int axis, int64_t begin, int64_t count);

// Start and stride at run time, from inputs or attributes. Inference has checked counts and magnitudes.
struct Steps
{
    int64_t start[kMaxRank], stride[kMaxRank];
};
Steps stepsOf(Attrs const& a, TensorRef const& start, TensorRef const& stride, int rank);

} // namespace tw::ops::slice
