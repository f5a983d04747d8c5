// SPDX-License-Identifier: Apache-2.0
// y[n,c,h,w] = x[n,c,h,w] / (k + alpha / W * sum of x[n,j,h,w]^2 over |j - c| <= (W - 1) / 2)^beta
//   x, y [batch..., C, h, w], rank >= 3; the window is clipped at the first and last channel, W in alpha / W is not.
#pragma once

#include "ir/attrs.h"

namespace tw::ops::lrn {

struct Attrs : ir::AttrsOf<Attrs>
{
    int64_t window = 1;
    float alpha = 0, beta = 1, k = 1;

    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "window", window);
        v.field(2, "alpha", alpha);
        v.field(3, "beta", beta);
        v.field(4, "k", k);
    }
};

} // namespace tw::ops::lrn
