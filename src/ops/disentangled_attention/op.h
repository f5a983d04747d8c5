// SPDX-License-Identifier: Apache-2.0
// Scores of attention with relative positions, as DeBERTa adds them up:
//   y[b,i,j] = (content[b,i,j] + toPosition[b,i,t] + fromPosition[b,j,t]) * factor
// t stands for how far j is behind i: t = clamp(f(i - j) + span, 0, 2 span - 1). f is the distance itself up to mid =
// span / 2, and grows with its logarithm behind that: with r = |i - j| > mid, sign(i - j) (ceil(ln(r / mid) (mid - 1) /
// ln((S - 1) / mid) (1 - 1e-7)) + mid).
//   content [B, S, S]; toPosition, fromPosition [B, S, 2 span]; f32 or f16, one type.
#pragma once

#include "ir/attrs.h"
#include "ir/op_def.h"
#include "tactic/reference.h"
#include "tactic/tactic.h"

namespace tw::ops::disentangled_attention {

struct Attrs : ir::AttrsOf<Attrs>
{
    int64_t span = 1;
    double factor = 1;

    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "span", span);
        v.field(2, "factor", factor);
    }
};

inline constexpr int64_t kMostSpan = 1 << 20;

// t of i - j = `distance` in sequences of `length`.
int64_t positionOf(int64_t distance, int64_t span, int64_t length);

} // namespace tw::ops::disentangled_attention
