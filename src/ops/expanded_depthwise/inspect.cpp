// SPDX-License-Identifier: Apache-2.0
// Told by the second of its two convolutions.
#include "families/convolution/layer_facts.h"
#include "ops/expanded_depthwise/op.h"

namespace tw::ops {

void inspect_expanded_depthwise(LayerFacts& facts)
{
    auto const& a = facts.attrs<expanded_depthwise::Attrs>();
    Epilogue end;
    end.activation = a.outer;
    addConvolution(facts, WindowKind::kConvolution, a, end, 3);
    facts.layerType = "FusedConvActConvolution";
}

} // namespace tw::ops
