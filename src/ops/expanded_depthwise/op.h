// SPDX-License-Identifier: Apache-2.0
// y = g(depthwise(z, w2) + b2), z = f(w1 x + b1): a convolution of one element and the depthwise one that reads it.
//   x f32 [n, c, h, w], w1 [m, c, 1, 1], b1 [m], w2 [m, 1, r, s], b2 [m], y [n, m, h', w']; f, g: activations or none
// Attributes are the depthwise convolution's, groups = m. Made by passes for the CPU, where z does not fit in L2: rows
// of z are used right after they were made. The node's body holds the nodes it stands for.
#pragma once

#include "families/convolution/kernel_window.h"
#include "families/elementwise/activate.h"

namespace tw::ops::expanded_depthwise {

struct Attrs : KernelWindowAttrs
{
    FusedActivation outer, inner; // g, f

    Attrs() = default;
    Attrs(KernelWindowAttrs const& depthwise, FusedActivation const& f, FusedActivation const& g)
        : KernelWindowAttrs(depthwise), outer(g), inner(f)
    {}
    void visit(ir::AttrVisitor& v) override
    {
        KernelWindowAttrs::visit(v); // 1 to 6
        outer.visit(v, 7);           // to 9
        v.field(10, "inner_activation", inner.kind);
        v.field(11, "inner_alpha", inner.alpha);
        v.field(12, "inner_beta", inner.beta);
    }
    std::unique_ptr<ir::AttrsBase> clone() const override { return std::make_unique<Attrs>(*this); }
};

} // namespace tw::ops::expanded_depthwise
