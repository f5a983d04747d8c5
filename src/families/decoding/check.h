// SPDX-License-Identifier: Apache-2.0
// What inference checks of the tensors that ops of decoding share, and what tests may fill them with.
#pragma once

#include <initializer_list>

#include "families/decoding/row_params.h"
#include "ir/infer.h"
#include "tactic/domain.h"

namespace tw::ops::decoding {

// Dimensions that are known and differ.
inline bool differ(ir::Dim const& a, ir::Dim const& b)
{
    return a.isConst() && b.isConst() && a.value() != b.value();
}

// Input i must have this type and these dimensions; -1 is any. `form` says so: "[rows, capacity]".
inline Result<void> checkInput(ir::InferContext& ctx, int i, char const* what, DataType type,
                               std::initializer_list<ir::Dim> dims, char const* form)
{
    if (!ctx.has(i))
        return {};
    ir::Shape const& shape = ctx.shape(i);
    bool fits = ctx.type(i) == type && shape.size() == dims.size();
    for (size_t d = 0; fits && d < dims.size(); ++d)
        fits = dims.begin()[d].is(-1) || !differ(shape[d], dims.begin()[d]);
    if (!fits)
        return ctx.error("{} {} must be {} {}", what, ctx.describe(i), nameOf(type), form);
    return {};
}

inline Result<void> checkLogits(ir::InferContext& ctx, int i)
{
    if (!isFloating(ctx.type(i)) || ctx.rank(i) != 2)
        return ctx.error("logits {} must be f32 or f16 [rows, tokens]", ctx.describe(i));
    if (ir::Dim const& tokens = ctx.shape(i)[1]; tokens.isConst() && tokens.value() > kMostTokens)
        return ctx.error("logits {} have {} tokens; {} are the most", ctx.describe(i), tokens.value(), kMostTokens);
    return {};
}

constexpr int64_t kMostElements = int64_t(1) << 31; // of a dimension, or of a row

// Integers from `lo` to below a dimension; where it is open, some.
inline Domain below(ir::Dim const& d, double lo)
{
    return {lo, d.isConst() ? std::max<double>(lo, double(d.value()) - 1) : 4, true};
}

} // namespace tw::ops::decoding
