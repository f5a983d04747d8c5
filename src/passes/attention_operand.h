// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "ops/attention/op.h"
#include "passes/strided_view.h"

namespace tw::passes {

constexpr int kMostOperandNodes = 8; // between an operand and the tensor it is a part of

// A tensor of whose rows q, k or v are a part, as an attention node reads it.
struct AttentionOperand
{
    StridedView view;
    ir::Shape shape; // that the node wants of the view's source
    ops::attention::Operand operand;
};

// Reads through the deepest chain of reshapes, transposes, slices and gathers that the node can do without. `wanted`:
// [B, heads, S, size], of `v` or, where `turned`, of `v` with its last two dimensions turned over; `v` may have the
// first two as one. None: the node cannot read `v` however it came about.
std::optional<AttentionOperand> operandOf(ir::Value* v, bool turned, ir::Shape const& wanted);

// The same for keys or values of [B, heads / perKey, S, size] whose heads are repeated, each `perKey` times one behind the
// other, by an expansion and a reshape: without these two. `perKey` is what is found.
std::optional<AttentionOperand> sharedOperandOf(ir::Value* v, bool turned, ir::Shape const& wanted, int64_t& perKey);

// move(source) of integers, which `dequantize` makes numbers of, as move(dequantize(source)): the dequantize in front, which
// is new, and what moves floats, in the order of `moving`. The old ones stay for others.
struct RaisedDequantize
{
    ir::Node* node = nullptr;
    std::vector<ir::Node*> moving;

    ir::Value* result() const { return moving.back()->outputs[0]; }
};
Result<RaisedDequantize> raiseDequantize(ir::Graph& g, ir::Node const& dequantize, ir::Value* source,
                                         std::vector<ir::Node*> const& moving);

} // namespace tw::passes
