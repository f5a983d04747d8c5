// SPDX-License-Identifier: Apache-2.0
// What convolution and deconvolution share: their attributes, and the numbers that a loop nest over them needs.
#pragma once

#include "base/extents.h"
#include "families/convolution/window.h"
#include "ir/attrs.h"

namespace tw::ops {

struct KernelWindowAttrs : ir::AttrsOf<KernelWindowAttrs>
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
    static KernelWindowAttrs plain(int windowRank)
    {
        KernelWindowAttrs a;
        a.strides.assign(windowRank, 1);
        a.dilations.assign(windowRank, 1);
        a.prePadding.assign(windowRank, 0);
        a.postPadding.assign(windowRank, 0);
        return a;
    }
};

// Everything a loop nest needs, as three window axes (a 2-D window has depth 1).
struct KernelWindowGeometry
{
    int64_t batch = 1, groups = 1, c = 0, k = 0; // c, k: channels of x and y
    int64_t in[3]{1, 1, 1}, out[3]{1, 1, 1}, window[3]{1, 1, 1};
    int64_t stride[3]{1, 1, 1}, dilation[3]{1, 1, 1}, before[3]{0, 0, 0};
};
KernelWindowGeometry geometryOf(WindowKind kind, KernelWindowAttrs const& a, Extents const& x, Extents const& w,
                                Extents const& y);

} // namespace tw::ops
