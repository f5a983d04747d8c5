// SPDX-License-Identifier: Apache-2.0
// y = x, in another format (base/format.h): which, the formats of the two values say. Made by the builder between nodes
// whose tactics want different ones.
#pragma once

#include "ir/attrs.h"
#include "tactic/reference.h"
#include "tactic/tactic.h"

namespace tw::ops::reformat {

struct Attrs : ir::AttrsOf<Attrs>
{
    void visit(ir::AttrVisitor&) override {}
};

// The pairs of formats that there are kernels for: one of them linear or one that kernels work in.
std::vector<Formats> formatPairs(Problem const& problem);

} // namespace tw::ops::reformat
