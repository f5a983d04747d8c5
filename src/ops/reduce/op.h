// SPDX-License-Identifier: Apache-2.0
// y = sum, product, maximum, minimum or average of x over the axes of a mask; no axis: y = x.
//   x: any rank, f32, f16, i8 or i32; y: without the reduced axes, or with 1 in their place.
// f32, f16: NaN wins over every number in maximum and minimum. i8: the exact result, average rounded half to even, into
// [-128, 127]. i32: wraps; average of the exact sum, toward zero.
// Nothing to reduce: sum 0, product 1, maximum -inf / -128 / INT_MIN, minimum +inf / 127 / INT_MAX, average NaN (i8:
// -128, i32: 0).
// f32 and f16 may be more: y = after(sum of before(x)) and so on, which passes make of the nodes around:
//   before abs: L1 norm       square: sum of squares; with after sqrt: L2 norm       after log: log of a sum
//   exp and log: m + log(sum of exp(x - m)), m the maximum of x; an infinite m or NaN is the result itself
#pragma once

#include "ir/attrs.h"
#include "ops/reduce/kind_params.h"

namespace tw::ops::reduce {

struct Attrs : ir::AttrsOf<Attrs>
{
    Kind kind = Kind::kSum;
    int64_t axes = 0; // bit i: axis i
    bool keepDims = false;
    Before before = Before::kNothing;
    After after = After::kNothing;

    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "kind", kind);
        v.field(2, "axes", axes);
        v.field(3, "keep_dims", keepDims);
        v.field(4, "before", before);
        v.field(5, "after", after);
    }
    bool has(int axis) const { return axes >> axis & 1; }
    bool isBare() const { return before == Before::kNothing && after == After::kNothing; }
    bool isLogSumExp() const { return before == Before::kExp; }
};

} // namespace tw::ops::reduce
