// SPDX-License-Identifier: Apache-2.0
// y = a op b, element by element; equal rank, each dimension equal or 1 (broadcast).
//   sum prod max min sub div floor_div : f32 f16 i8 i32, y of the same type      pow : f32 f16 i8
//   and or xor : b, y is b               equal greater less : f32 f16 i8 i32, y is b
// Both inputs have one type, or both are of {f32, f16}: then a mixed pair computes and gives f32.
// max and min give NaN when either is NaN. i32 wraps; div truncates toward zero, floor_div rounds down, division by 0
// gives 0. i8 is the exact result on the raw integers, rounded half to even (div, pow) and saturated; division by 0
// gives 0.
#pragma once

#include "ir/attrs.h"
#include "tactic/reference.h"
#include "tactic/tactic.h"

namespace tw::ops::elementwise {

enum class Operation : int32_t // same numbers as nvinfer1::ElementWiseOperation
{
    kSum = 0,
    kProd = 1,
    kMax = 2,
    kMin = 3,
    kSub = 4,
    kDiv = 5,
    kPow = 6,
    kFloorDiv = 7,
    kAnd = 8,
    kOr = 9,
    kXor = 10,
    kEqual = 11,
    kGreater = 12,
    kLess = 13,
};
inline constexpr int kOperationCount = 14;
inline constexpr char const* kOperationNames[kOperationCount] = {
    "sum", "prod", "max", "min", "sub", "div", "pow", "floor_div", "and", "or", "xor", "equal", "greater", "less"};

inline bool isLogic(Operation o)
{
    return o == Operation::kAnd || o == Operation::kOr || o == Operation::kXor;
}
inline bool isComparison(Operation o)
{
    return o == Operation::kEqual || o == Operation::kGreater || o == Operation::kLess;
}

struct Attrs : ir::AttrsOf<Attrs>
{
    Operation operation = Operation::kSum;

    Attrs() = default;
    explicit Attrs(Operation o) : operation(o) {}
    void visit(ir::AttrVisitor& v) override { v.field(1, "operation", operation); }
};

} // namespace tw::ops::elementwise
