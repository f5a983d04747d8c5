// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "ops/attention/op.h"
#include "passes/strided_view.h"

namespace tw::passes {

constexpr int kMostNodes = 8; // between an operand and the tensor it is a part of

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

} // namespace tw::passes
