// SPDX-License-Identifier: Apache-2.0
// y[.., d, ..] = indices[.., ..] == d ? on : off for d in [0, depth), where the new axis stands at `axis` of y.
//   input 0 indices i32; 1 values [off, on] of any type but u8; 2 depth, an i32 scalar (or one element) that decides
//   the shape. axis -1 is the last one. An index in [-depth, -1] counts from the end; any other outside gives off
//   everywhere.
#pragma once

#include "ir/attrs.h"
#include "tactic/reference.h"
#include "tactic/tactic.h"

namespace tw::ops::one_hot {

struct Attrs : ir::AttrsOf<Attrs>
{
    int32_t axis = -1; // -rank-1 .. rank of the indices

    Attrs() = default;
    explicit Attrs(int32_t a) : axis(a) {}
    void visit(ir::AttrVisitor& v) override { v.field(1, "axis", axis); }
    int axisIn(int outputRank) const { return axis < 0 ? axis + outputRank : axis; }
};

} // namespace tw::ops::one_hot
