// SPDX-License-Identifier: Apache-2.0
// y[i] = x[i], converted to the output type; y has the shape of x.
//   any type to itself; any of f32 f16 i32 b to any of them; f32, f16 to u8; u8 to f32, f16.
// To i32 and u8: toward zero, saturated at the ends of the type, NaN gives 0. To f16 and f32: to nearest even. To b: 0
// gives false, all else (NaN too) true.
#pragma once

#include "ir/attrs.h"
#include "tactic/reference.h"
#include "tactic/tactic.h"

namespace tw::ops::identity {

struct Attrs : ir::AttrsOf<Attrs>
{
    int32_t outputType = kSameType; // a DataType

    static constexpr int32_t kSameType = -1;

    Attrs() = default;
    explicit Attrs(DataType t) : outputType(int32_t(t)) {}
    void visit(ir::AttrVisitor& v) override { v.field(1, "output_type", outputType); }
};

// Whether the table above has this conversion.
bool converts(DataType from, DataType to);

} // namespace tw::ops::identity
