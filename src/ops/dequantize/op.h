// SPDX-License-Identifier: Apache-2.0
// y = x * scale, element by element; x is i8, y has its shape and the output type, f32 or f16.
//   input 1 scale: f32, [] or [n]; axis -1: one number for all of x; axis >= 0: one for each index along that axis.
// The product is that of FP32, rounded by itself, then to the output type.
#pragma once

#include "ir/attrs.h"
#include "tactic/reference.h"
#include "tactic/tactic.h"

namespace tw::ops::dequantize {

struct Attrs : ir::AttrsOf<Attrs>
{
    int32_t axis = kPerTensor;
    DataType outputType = DataType::kFloat;

    static constexpr int32_t kPerTensor = -1;

    Attrs() = default;
    explicit Attrs(int32_t a, DataType type = DataType::kFloat) : axis(a), outputType(type) {}
    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "axis", axis);
        v.field(2, "output_type", outputType);
    }
};

} // namespace tw::ops::dequantize
