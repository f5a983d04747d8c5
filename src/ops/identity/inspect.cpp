// SPDX-License-Identifier: Apache-2.0
// A copy or a cast: 8.5 makes both with its reformat kernels.
#include "tactic/layer_facts.h"

namespace tw::ops {

void inspect_identity(LayerFacts& facts)
{
    facts.kind("Reformat");
    facts.add("Origin", "REFORMAT");
}

} // namespace tw::ops
