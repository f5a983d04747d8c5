// SPDX-License-Identifier: Apache-2.0
#include "ops/softmax/op.h"
#include "tactic/layer_facts.h"

namespace tw::ops {

void inspect_softmax(LayerFacts& facts)
{
    facts.kind("CudaSoftMax", "SoftMax");
    facts.add("Axes", int64_t(1) << facts.attrs<softmax::Attrs>().axis);
    facts.addFlag("HasLog", facts.attrs<softmax::Attrs>().log);
}

} // namespace tw::ops
