// SPDX-License-Identifier: Apache-2.0
#include "ops/activation/op.h"

#include "families/elementwise/layer_facts.h"

namespace tw::ops {

void inspect_activation(LayerFacts& facts)
{
    addFunction(facts, activationName(FusedActivation(facts.attrs<activation::Attrs>())));
}

} // namespace tw::ops
