// SPDX-License-Identifier: Apache-2.0
// y[n,o] = the maximum or average of x over the window that begins at o S - B in each of the 2 or 3 innermost axes.
//   x [batch..., spatial...], y [batch..., out...]; the window's rank is that of the attribute lists.
// max: over the elements inside x; -inf (i8: -128) for a window without any. NaN wins over every number.
// average: sum of the elements inside x over a count; the count is of these elements when padding is excluded, else of
//   the positions inside the padded input; 0 when the window has no element of x.
// blend: (1 - f) max + f average. i8 results are rounded half to even.
#pragma once

#include "families/convolution/window.h"
#include "ir/attrs.h"
#include "ops/pooling/kind_params.h"

namespace tw::ops::pooling {

struct Attrs : ir::AttrsOf<Attrs>
{
    Kind kind = Kind::kMax;
    std::vector<int64_t> window, strides, prePadding, postPadding; // one for each window axis
    PaddingMode paddingMode = PaddingMode::kExplicitRoundDown;
    float blend = 0;
    bool excludePadding = true;

    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "kind", kind);
        v.field(2, "window", window);
        v.field(3, "strides", strides);
        v.field(4, "pre_padding", prePadding);
        v.field(5, "post_padding", postPadding);
        v.field(6, "padding_mode", paddingMode);
        v.field(7, "blend", blend);
        v.field(8, "exclude_padding", excludePadding);
    }
    WindowParams axis(int i) const { return WindowParams{window[i], strides[i], 1, prePadding[i], postPadding[i]}; }
    // Strides 1, no padding.
    static Attrs plain(Kind kind, std::vector<int64_t> window)
    {
        Attrs a;
        a.kind = kind;
        a.strides.assign(window.size(), 1);
        a.prePadding.assign(window.size(), 0);
        a.postPadding.assign(window.size(), 0);
        a.window = std::move(window);
        return a;
    }
};

// Three window axes; a 2-D window has depth 1.
struct Geometry
{
    int64_t batch = 1; // planes
    int64_t in[3]{1, 1, 1}, out[3]{1, 1, 1}, window[3]{1, 1, 1}, stride[3]{1, 1, 1};
    int64_t before[3]{0, 0, 0}, after[3]{0, 0, 0};
};
Geometry geometryOf(Attrs const& a, Extents const& x, Extents const& y);

} // namespace tw::ops::pooling
