// SPDX-License-Identifier: Apache-2.0
// y = sum, product, maximum, minimum or average of x over the axes of a mask; no axis: y = x.
//   x: any rank, f32, f16, i8 or i32; y: without the reduced axes, or with 1 in their place.
// f32, f16: NaN wins over every number in maximum and minimum. i8: the exact result, average rounded half to even, into
// [-128, 127]. i32: wraps; average of the exact sum, toward zero.
// Nothing to reduce: sum 0, product 1, maximum -inf / -128 / INT_MIN, minimum +inf / 127 / INT_MAX, average NaN (i8:
// -128, i32: 0).
#pragma once

#include "ir/attrs.h"
#include "ir/op_def.h"
#include "ops/reduce/kind_params.h"

namespace tw::ops::reduce {

struct Attrs : ir::AttrsOf<Attrs>
{
    Kind kind = Kind::kSum;
    int64_t axes = 0; // bit i: axis i
    bool keepDims = false;

    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "kind", kind);
        v.field(2, "axes", axes);
        v.field(3, "keep_dims", keepDims);
    }
    bool has(int axis) const { return axes >> axis & 1; }
};

Result<void> reference(RefContext& ctx);
std::span<Tactic const* const> cpuTactics();
std::span<Tactic const* const> cudaTactics();

} // namespace tw::ops::reduce
