// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/layer_facts.h"
#include "ops/convolution/op.h"

namespace tw::ops {

void inspect_convolution(LayerFacts& facts)
{
    auto const& a = facts.attrs<convolution::Attrs>();
    addConvolution(facts, a.kind(), a, a.epilogue);
}

} // namespace tw::ops
