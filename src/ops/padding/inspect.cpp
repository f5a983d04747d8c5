// SPDX-License-Identifier: Apache-2.0
#include "ops/padding/op.h"
#include "tactic/layer_facts.h"

namespace tw::ops {

void inspect_padding(LayerFacts& facts)
{
    auto const& a = facts.attrs<padding::Attrs>();
    facts.kind("Padding");
    facts.add("PrePadding", a.pre);
    facts.add("PostPadding", a.post);
}

} // namespace tw::ops
