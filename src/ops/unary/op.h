// SPDX-License-Identifier: Apache-2.0
// y[i] = f(x[i]) for the 23 unary operations; y has the shape and type of x.
//   not: bool.   sign (1, -1 or 0; NaN gives 0): f32, f16, i8, i32.   All others: f32, f16, i8.
// log is natural, round goes half to even. i8 is the function of the raw integer, rounded half to even and saturated;
// NaN gives 0 there.
#pragma once

#include "ir/attrs.h"
#include "tactic/reference.h"
#include "tactic/tactic.h"

namespace tw::ops::unary {

enum class Operation : int32_t // same numbers as nvinfer1::UnaryOperation
{
    kExp = 0,
    kLog = 1,
    kSqrt = 2,
    kRecip = 3,
    kAbs = 4,
    kNeg = 5,
    kSin = 6,
    kCos = 7,
    kTan = 8,
    kSinh = 9,
    kCosh = 10,
    kAsin = 11,
    kAcos = 12,
    kAtan = 13,
    kAsinh = 14,
    kAcosh = 15,
    kAtanh = 16,
    kCeil = 17,
    kFloor = 18,
    kErf = 19,
    kNot = 20,
    kSign = 21,
    kRound = 22,
};
inline constexpr int kOperationCount = 23;
inline constexpr char const* kOperationNames[kOperationCount] = {
    "exp",  "log",  "sqrt",  "recip", "abs",   "neg",  "sin",   "cos", "tan", "sinh", "cosh", "asin",
    "acos", "atan", "asinh", "acosh", "atanh", "ceil", "floor", "erf", "not", "sign", "round"};

struct Attrs : ir::AttrsOf<Attrs>
{
    Operation operation = Operation::kExp;

    Attrs() = default;
    explicit Attrs(Operation o) : operation(o) {}
    void visit(ir::AttrVisitor& v) override { v.field(1, "operation", operation); }
};

} // namespace tw::ops::unary
