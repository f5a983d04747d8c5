// SPDX-License-Identifier: Apache-2.0
// y = f(s + b[k] + r), with b, r and f all optional; 2-D or 3-D windows.
//   s[n,k,o] = sum over c, g of w[k,c,g] * x[n, group(k) C/G + c, o S - B + g D]   (correlation)
//   x [batch..., C, spatial...], w [K, C/G, window...], b [K], r and y [batch..., K, out...].
// Transposed ("deconvolution"):
//   s[n,k,o] = sum over the channels c of k's group, and over i, g with i S - B + g D = o, of w[c,k',g] * x[n,c,i]
//   k' is k within its group, w [C, K/G, window...]; padding trims y.
// The window's rank (2 or 3) is the rank of w less 2; leading dimensions of x beyond the channel are all batch.
// Outside x counts as zero. With no input channels s is zero. f: an activation. All in f32 or f16; or x and w in i8, and
// what then follows the sums in f32 (families/elementwise/epilogue.h). A node that passes made of several has
// them as its body.
#pragma once

#include "families/convolution/kernel_window.h"
#include "families/elementwise/epilogue.h"

namespace tw::ops::convolution {

struct Attrs : KernelWindowAttrs
{
    Epilogue epilogue; // no norm
    bool transposed = false;

    Attrs() = default;
    Attrs(KernelWindowAttrs const& window, FusedActivation const& f, bool transposed = false)
        : KernelWindowAttrs(window), transposed(transposed)
    {
        epilogue.activation = f;
    }
    // Strides and dilations 1, no padding.
    static Attrs plain(int windowRank, bool transposed = false)
    {
        return Attrs(KernelWindowAttrs::plain(windowRank), {}, transposed);
    }
    WindowKind kind() const { return transposed ? WindowKind::kDeconvolution : WindowKind::kConvolution; }
    void visit(ir::AttrVisitor& v) override
    {
        KernelWindowAttrs::visit(v); // 1 to 6
        epilogue.visit(v, 7);        // to 9
        v.field(10, "transposed", transposed);
        epilogue.visitType(v, 11);
        epilogue.visitSteps(v, 12);
    }
    std::unique_ptr<ir::AttrsBase> clone() const override { return std::make_unique<Attrs>(*this); }
};

using Geometry = KernelWindowGeometry;
inline Geometry geometryOf(Attrs const& a, Extents const& x, Extents const& w, Extents const& y)
{
    return ops::geometryOf(a.kind(), a, x, w, y);
}

// A node of this op, of which nothing else has become a part: no activation, no residual, no body.
bool isBare(ir::Node const& node);
// The same, not transposed.
bool isBareForward(ir::Node const& node);

} // namespace tw::ops::convolution
