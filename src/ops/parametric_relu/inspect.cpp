// SPDX-License-Identifier: Apache-2.0
#include "tactic/layer_facts.h"

namespace tw::ops {

void inspect_parametric_relu(LayerFacts& facts)
{
    facts.kind("ParametricReLU");
}

} // namespace tw::ops
