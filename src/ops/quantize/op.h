// SPDX-License-Identifier: Apache-2.0
// y = clamp(round(x / scale), -128, 127), element by element; y is i8 and has the shape of x (f32, f16).
//   input 1 scale: f32, [] or [n]; axis -1: one number for all of x; axis >= 0: one for each index along that axis.
// The quotient is that of FP32, rounded by itself; round: half to even. NaN gives 0.
#pragma once

#include "ir/attrs.h"
#include "tactic/reference.h"
#include "tactic/tactic.h"

namespace tw::ops::quantize {

struct Attrs : ir::AttrsOf<Attrs>
{
    int32_t axis = kPerTensor;

    static constexpr int32_t kPerTensor = -1;

    Attrs() = default;
    explicit Attrs(int32_t a) : axis(a) {}
    void visit(ir::AttrVisitor& v) override { v.field(1, "axis", axis); }
};

} // namespace tw::ops::quantize
