// SPDX-License-Identifier: Apache-2.0
// y[n,k,o] = b[k] + sum of w[c,k',f] * x[n,c,i] over the channels c of k's group, and over i, f with i S - B + f D = o
// (convolution transposed; k' is k within its group; 2-D or 3-D windows).
//   x [batch..., C, spatial...], w [C, K/G, window...], b [K] (optional), y [batch..., K, out...].
// The window's rank (2 or 3) is the rank of w less 2; leading dimensions of x beyond the channel are all batch.
// Padding trims y. With no input channels y is the bias, or zero.
#pragma once

#include "ir/attrs.h"
#include "ir/op_def.h"
#include "ops/window.h"

namespace tw::ops::deconvolution {

struct Attrs : ir::AttrsOf<Attrs>
{
    std::vector<int64_t> strides, dilations, prePadding, postPadding; // one for each window axis
    PaddingMode paddingMode = PaddingMode::kExplicitRoundDown;
    int64_t groups = 1;

    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "strides", strides);
        v.field(2, "dilations", dilations);
        v.field(3, "pre_padding", prePadding);
        v.field(4, "post_padding", postPadding);
        v.field(5, "padding_mode", paddingMode);
        v.field(6, "groups", groups);
    }
    WindowParams window(int axis, int64_t size) const
    {
        return WindowParams{size, strides[axis], dilations[axis], prePadding[axis], postPadding[axis]};
    }
    // Strides and dilations 1, no padding.
    static Attrs plain(int windowRank)
    {
        Attrs a;
        a.strides.assign(windowRank, 1);
        a.dilations.assign(windowRank, 1);
        a.prePadding.assign(windowRank, 0);
        a.postPadding.assign(windowRank, 0);
        return a;
    }
};

// Everything a loop nest needs, as three window axes (a 2-D window has depth 1).
struct Geometry
{
    int64_t batch = 1, groups = 1, c = 0, k = 0; // c, k: channels of x and y
    int64_t in[3]{1, 1, 1}, out[3]{1, 1, 1}, window[3]{1, 1, 1};
    int64_t stride[3]{1, 1, 1}, dilation[3]{1, 1, 1}, before[3]{0, 0, 0};
};
Geometry geometryOf(Attrs const& a, Extents const& x, Extents const& w, Extents const& y);

Result<void> reference(RefContext& ctx);
std::span<Tactic const* const> cpuTactics();

} // namespace tw::ops::deconvolution
