// SPDX-License-Identifier: Apache-2.0
#include "tactic/layer_facts.h"

namespace tw::ops {

void inspect_plugin(LayerFacts& facts)
{
    facts.kind("PluginV2");
}

} // namespace tw::ops
