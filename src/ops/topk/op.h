// SPDX-License-Identifier: Apache-2.0
// The k largest (or smallest) elements of x along an axis, best first: values (type of x) and their indices (i32).
//   x: rank >= 1, f32, f16 or i8; both outputs: the shape of x with k in place of the axis, which is one of the last
//   four. Of equal elements (0 and -0 are equal) the lower index comes first. NaN counts as larger than +inf.
#pragma once

#include "ir/attrs.h"

namespace tw::ops::topk {

inline constexpr int64_t kMaxK = 3840;

enum class Kind : int32_t // same numbers as nvinfer1::TopKOperation
{
    kMax = 0,
    kMin = 1,
};

struct Attrs : ir::AttrsOf<Attrs>
{
    Kind kind = Kind::kMax;
    int64_t k = 1;
    int64_t axis = 0; // 0 .. rank - 1

    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "kind", kind);
        v.field(2, "k", k);
        v.field(3, "axis", axis);
    }
};

} // namespace tw::ops::topk
