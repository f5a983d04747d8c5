// SPDX-License-Identifier: Apache-2.0
// A copy or a cast: 8.5 makes both with its reformat kernels, and says whether the network has that layer.
#include <algorithm>

#include "tactic/layer_facts.h"

namespace tw::ops {

void inspect_identity(LayerFacts& facts)
{
    facts.kind("Reformat");
    auto const& layers = facts.node.layers;
    bool const isLayer = std::find(layers.begin(), layers.end(), facts.node.name) != layers.end();
    facts.add("Origin", isLayer ? "IDENTITY" : "REFORMAT");
}

} // namespace tw::ops
