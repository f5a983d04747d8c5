// SPDX-License-Identifier: Apache-2.0
#include "ops/slice/op.h"
#include "tactic/layer_facts.h"

namespace tw::ops {

void inspect_slice(LayerFacts& facts)
{
    auto const& a = facts.attrs<slice::Attrs>();
    constexpr char const* kModes[] = {"kSTRICT_BOUNDS", "kWRAP", "kCLAMP", "kFILL", "kREFLECT"};
    std::vector<int64_t> const unknown(facts.input(0)->shape.size(), -1);
    facts.kind("Slice");
    facts.add("Start", facts.input(1) ? unknown : a.start);
    facts.add("Stride", facts.input(3) ? unknown : a.stride);
    facts.add("Size", facts.input(2) ? numbersOf(facts.node.outputs[0]->shape) : a.size);
    facts.add("Mode", kModes[int(a.mode)]);
    facts.addFlag("negativeInfinityPadding", false);
}

} // namespace tw::ops
