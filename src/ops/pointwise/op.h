// SPDX-License-Identifier: Apache-2.0
// y[I] = e(x0[I], x1[I], ...): an expression of steps, each a function of inputs and of the steps before it; the last
// one makes y. Inputs are f32, f16 or i8 (the integers as numbers), each for itself; steps are computed in f32 and
// rounded once, to y's type. What a cluster of element-wise nodes becomes (passes/fusion/fuse_pointwise.cpp).
// Where an input or y is i8 (quantized), each step is an operation of FP32 that is rounded by itself, and never a part
// of another one; y of i8 is the last step's result rounded half to even and clamped to [-128, 127], NaN gives 0. See
// docs/adr/0012-int8-in-the-graph.md.
//   Inputs come in one of three ways: broadcast (of y's rank, each dimension that of y or 1; these come first, and
//   there is at least one), scalar (one element, any shape), channel (as many elements as y has along an axis).
#pragma once

#include <string>
#include <vector>

#include "base/types.h"
#include "families/elementwise/steps.h"
#include "ir/attrs.h"
#include "tactic/reference.h"
#include "tactic/tactic.h"

namespace tw::ops::pointwise {

enum class InputKind : int64_t
{
    kBroadcast = 0,
    kScalar = 1,
    kChannel = 2,
};

struct Attrs : ir::AttrsOf<Attrs>
{
    // As in families/elementwise/steps.h.
    std::vector<int64_t> steps;
    std::vector<double> parameters;
    std::vector<int64_t> inputs; // two numbers each: InputKind, axis (kChannel; else 0)
    DataType outputType = DataType::kFloat;

    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "steps", steps);
        v.field(2, "parameters", parameters);
        v.field(3, "inputs", inputs);
        v.field(4, "output_type", outputType);
    }
};
inline constexpr int kMaxInputs = 8;
inline constexpr int kNumbersOfInput = 2;

// Empty when the expression is one that kernels compute; else what is wrong.
std::string checkExpression(Attrs const& a);
// An input or the output is i8.
bool isQuantized(ir::Node const& node);

Result<void> reference(RefContext& ctx);
} // namespace tw::ops::pointwise
