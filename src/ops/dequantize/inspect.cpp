// SPDX-License-Identifier: Apache-2.0
#include "ops/dequantize/op.h"
#include "tactic/layer_facts.h"

namespace tw::ops {

void inspect_dequantize(LayerFacts& facts)
{
    facts.kind("Dequantize");
    facts.add("Axis", int64_t(facts.attrs<dequantize::Attrs>().axis));
    facts.addWeights("Scale", facts.input(1));
}

} // namespace tw::ops
