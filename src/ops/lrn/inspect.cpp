// SPDX-License-Identifier: Apache-2.0
#include "tactic/layer_facts.h"

namespace tw::ops {

void inspect_lrn(LayerFacts& facts)
{
    facts.kind("LRN");
}

} // namespace tw::ops
