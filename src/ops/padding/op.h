// SPDX-License-Identifier: Apache-2.0
// y[..., i, j] = x[..., i - pre[0], j - pre[1]], zero where that is outside x.
//   x [..., a, b] of rank >= 3 and any type, y [..., pre[0] + a + post[0], pre[1] + b + post[1]]; a negative padding
//   crops.
#pragma once

#include "ir/attrs.h"

namespace tw::ops::padding {

struct Attrs : ir::AttrsOf<Attrs>
{
    std::vector<int64_t> pre{0, 0}, post{0, 0};

    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "pre", pre);
        v.field(2, "post", post);
    }
};

} // namespace tw::ops::padding
