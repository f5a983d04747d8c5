// SPDX-License-Identifier: Apache-2.0
// y = inputs one after the other along `axis`; one type, equal dimensions off the axis.
#pragma once

#include "ir/attrs.h"
#include "tactic/reference.h"
#include "tactic/tactic.h"

namespace tw::ops::concatenation {

struct Attrs : ir::AttrsOf<Attrs>
{
    int32_t axis = 0;

    Attrs() = default;
    explicit Attrs(int32_t a) : axis(a) {}
    void visit(ir::AttrVisitor& v) override { v.field(1, "axis", axis); }
};

} // namespace tw::ops::concatenation
