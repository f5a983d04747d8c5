// SPDX-License-Identifier: Apache-2.0
#include "tactic/layer_facts.h"

namespace tw::ops {

void inspect_loop(LayerFacts& facts)
{
    facts.kind("Loop");
}

} // namespace tw::ops
