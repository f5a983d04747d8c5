// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/layer_facts.h"
#include "ops/pooling/op.h"

namespace tw::ops {

void inspect_pooling(LayerFacts& facts)
{
    auto const& a = facts.attrs<pooling::Attrs>();
    constexpr char const* kTypes[] = {"MAX", "AVERAGE", "MAX_AVERAGE_BLEND"};
    facts.kind(facts.tacticHas("plain") ? "CudaPooling" : "CaskPooling", "Pooling");
    facts.add("PoolingType", kTypes[int(a.kind)]);
    facts.add("WindowSize", a.window);
    facts.add("PaddingMode", publishedName(a.paddingMode));
    facts.add("PrePadding", a.prePadding);
    facts.add("PostPadding", a.postPadding);
    facts.add("Stride", a.strides);
    facts.add("BlendFactor", double(a.blend));
    facts.addFlag("AverageCountExcludesPadding", a.excludePadding);
}

} // namespace tw::ops
