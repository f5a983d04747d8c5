// SPDX-License-Identifier: Apache-2.0
// y[o,p,i] = sum over q <= p of x[o,q,i] along one axis; q < p when exclusive, q >= p (q > p) in reverse.
// x, y: the same shape, rank >= 1, f32, f16 or i32, which wraps.
#pragma once

#include "ir/attrs.h"

namespace tw::ops::cumulative_sum {

struct Attrs : ir::AttrsOf<Attrs>
{
    int64_t axis = 0; // 0 .. rank - 1
    bool exclusive = false;
    bool reverse = false;

    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "axis", axis);
        v.field(2, "exclusive", exclusive);
        v.field(3, "reverse", reverse);
    }
};

} // namespace tw::ops::cumulative_sum
