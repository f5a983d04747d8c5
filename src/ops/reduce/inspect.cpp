// SPDX-License-Identifier: Apache-2.0
#include "ops/reduce/op.h"
#include "tactic/layer_facts.h"

namespace tw::ops {

void inspect_reduce(LayerFacts& facts)
{
    auto const& a = facts.attrs<reduce::Attrs>();
    constexpr char const* kOperations[] = {"kSUM", "kPROD", "kMAX", "kMIN", "kAVG"};
    facts.kind("Reduce");
    facts.add("Operation", kOperations[int(a.kind)]);
    facts.add("Axes", a.axes);
    facts.addFlag("KeepDimensions", a.keepDims);
}

} // namespace tw::ops
