// SPDX-License-Identifier: Apache-2.0
#include "tactic/layer_facts.h"

namespace tw::ops {

void inspect_reformat(LayerFacts& facts)
{
    facts.kind("Reformat");
    facts.add("Origin", "REFORMAT");
}

} // namespace tw::ops
