// SPDX-License-Identifier: Apache-2.0
// y[n,k,o] = b[k] + sum of w[c,k',f] * x[n,c,i] over the channels c of k's group, and over i, f with i S - B + f D = o
// (convolution transposed; k' is k within its group; 2-D or 3-D windows).
//   x [batch..., C, spatial...], w [C, K/G, window...], b [K] (optional), y [batch..., K, out...].
// The window's rank (2 or 3) is the rank of w less 2; leading dimensions of x beyond the channel are all batch.
// Padding trims y. With no input channels y is the bias, or zero.
#pragma once

#include "families/convolution/kernel_window.h"
#include "ir/op_def.h"

namespace tw::ops::deconvolution {

using Attrs = KernelWindowAttrs;
using Geometry = KernelWindowGeometry;
inline Geometry geometryOf(Attrs const& a, Extents const& x, Extents const& w, Extents const& y)
{
    return ops::geometryOf(WindowKind::kDeconvolution, a, x, w, y);
}

Result<void> reference(RefContext& ctx);
std::span<Tactic const* const> cpuTactics();
std::span<Tactic const* const> cudaTactics();

} // namespace tw::ops::deconvolution
