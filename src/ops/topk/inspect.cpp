// SPDX-License-Identifier: Apache-2.0
#include "ops/topk/op.h"
#include "tactic/layer_facts.h"

namespace tw::ops {

void inspect_topk(LayerFacts& facts)
{
    auto const& a = facts.attrs<topk::Attrs>();
    facts.kind("TopK");
    facts.add("Operation", a.kind == topk::Kind::kMax ? "kMAX" : "kMIN");
    facts.add("K", a.k);
    facts.add("Axes", int64_t(1) << a.axis);
}

} // namespace tw::ops
