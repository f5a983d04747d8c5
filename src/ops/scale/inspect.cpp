// SPDX-License-Identifier: Apache-2.0
#include <iterator>

#include "ops/scale/op.h"
#include "tactic/layer_facts.h"

namespace tw::ops {

void inspect_scale(LayerFacts& facts)
{
    auto const& a = facts.attrs<scale::Attrs>();
    constexpr char const* kModes[] = {"UNIFORM", "CHANNEL", "ELEMENTWISE"};
    constexpr char const* kCoefficients[] = {"Scale", "Shift", "Power"}; // inputs 1 to 3
    facts.kind("Scale");
    facts.add("Mode", kModes[int(a.mode)]);
    for (size_t i = 0; i < std::size(kCoefficients); ++i)
        if (facts.input(i + 1))
            facts.addWeights(kCoefficients[i], facts.input(i + 1));
        else
            facts.add(kCoefficients[i], WeightsFact());
    facts.add("Activation", "NONE");
    facts.add("ChannelAxis", int64_t(a.channelAxis));
}

} // namespace tw::ops
