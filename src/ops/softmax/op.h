// SPDX-License-Identifier: Apache-2.0
// y[o,j,i] = exp(x[o,j,i] - m) / s with m = max over j of x[o,j,i] and s = sum over j of exp(x[o,j,i] - m), along one
// axis; with `log` y[o,j,i] = x[o,j,i] - m - log(s), which is finite where the softmax is too small for its type.
// x, y: the same shape, rank >= 1. A slice that holds NaN or +inf, or nothing but -inf, is NaN throughout.
#pragma once

#include "ir/attrs.h"

namespace tw::ops::softmax {

struct Attrs : ir::AttrsOf<Attrs>
{
    int64_t axis = 0; // 0 .. rank - 1
    bool log = false;

    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "axis", axis);
        v.field(2, "log", log);
    }
};

} // namespace tw::ops::softmax
