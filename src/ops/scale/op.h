// SPDX-License-Identifier: Apache-2.0
// y = (x * scale + shift) ^ power, element by element; y has the shape of x (f32, f16 or i8, rank at least 1).
//   inputs 1 scale, 2 shift, 3 power: optional (1, 0, 1), f32 or f16, of any shape with as many elements as the mode
//   says: uniform 1; channel the size C of the channel axis; elementwise the product of the dimensions from that axis
//   on.
// y has the type of x; f32 and f16 may give i8 (this quantizes), and i8 stays i8: then the exact result is rounded half
// to even and saturated, NaN gives 0.
#pragma once

#include "ir/attrs.h"
#include "tactic/reference.h"
#include "tactic/tactic.h"

namespace tw::ops::scale {

enum class Mode : int32_t // same numbers as nvinfer1::ScaleMode
{
    kUniform = 0,
    kChannel = 1,
    kElementwise = 2,
};

struct Attrs : ir::AttrsOf<Attrs>
{
    Mode mode = Mode::kUniform;
    int32_t channelAxis = 1;
    int32_t outputType = kSameType; // a DataType

    static constexpr int32_t kSameType = -1;

    Attrs() = default;
    explicit Attrs(Mode m, int32_t axis = 1, int32_t type = kSameType) : mode(m), channelAxis(axis), outputType(type) {}
    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "mode", mode);
        v.field(2, "channel_axis", channelAxis);
        v.field(3, "output_type", outputType);
    }
};

// x as [outer, coefficients, inner]: coefficient k belongs to all elements [., k, .].
struct Geometry
{
    int64_t outer = 1, coefficients = 1, inner = 1;
};
Geometry geometryOf(Attrs const& a, Extents const& x);

} // namespace tw::ops::scale
