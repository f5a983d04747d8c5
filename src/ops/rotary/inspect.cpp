// SPDX-License-Identifier: Apache-2.0
// 8.5 gives such a subgraph to another compiler, whose layers have no kind of their own.
#include "tactic/layer_facts.h"

namespace tw::ops {

void inspect_rotary(LayerFacts& facts)
{
    facts.kind("Myelin", "");
}

} // namespace tw::ops
