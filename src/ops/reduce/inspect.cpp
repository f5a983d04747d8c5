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
    if (a.isBare())
        return;
    constexpr char const* kBefore[] = {"", "kABS", "kSQUARE", "kEXP"};
    constexpr char const* kAfter[] = {"", "kSQRT", "kLOG"};
    facts.add("Before", kBefore[int(a.before)]);
    facts.add("After", kAfter[int(a.after)]);
}

} // namespace tw::ops
