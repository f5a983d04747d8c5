// SPDX-License-Identifier: Apache-2.0
#include "ops/quantize/op.h"
#include "tactic/layer_facts.h"

namespace tw::ops {

void inspect_quantize(LayerFacts& facts)
{
    facts.kind("Quantize");
    facts.add("Axis", int64_t(facts.attrs<quantize::Attrs>().axis));
    facts.addWeights("Scale", facts.input(1));
}

} // namespace tw::ops
