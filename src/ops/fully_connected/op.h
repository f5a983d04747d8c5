// SPDX-License-Identifier: Apache-2.0
// y[N.., k, 0, 0] = b[k] + sum over v of w[k, v] * x[N.., v]   x [N.., C, H, W] with V = C H W, w [K, V] in any shape
// of that volume whose first dimension is K, b [K] (optional), y [N.., K, 1, 1]; f32 or f16, one type.
#pragma once

#include "ir/attrs.h"
#include "ir/op_def.h"
#include "ops/matrix_multiply/op.h"

namespace tw::ops::fully_connected {

// x [batch, V] times w transposed.
matrix_multiply::Geometry geometryOf(Extents const& x, Extents const& w);

Result<void> reference(RefContext& ctx);
std::span<Tactic const* const> cpuTactics();
std::span<Tactic const* const> cudaTactics();

} // namespace tw::ops::fully_connected
