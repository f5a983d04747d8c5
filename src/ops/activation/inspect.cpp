// SPDX-License-Identifier: Apache-2.0
#include "families/elementwise/layer_facts.h"
#include "ops/activation/op.h"

namespace tw::ops {

void inspect_activation(LayerFacts& facts)
{
    addFunction(facts, activationName(FusedActivation(facts.attrs<activation::Attrs>())));
}

} // namespace tw::ops
