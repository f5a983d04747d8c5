// SPDX-License-Identifier: Apache-2.0
#include "families/convolution/layer_facts.h"

#include "families/elementwise/layer_facts.h"

namespace tw::ops {

namespace {

// Kinds of kernel that 8.5 names: libraries', depthwise ones, generated ones.
std::string kernelKind(LayerFacts const& facts, std::string const& layer)
{
    if (facts.tacticHas("cudnn"))
        return "Cudnn" + layer;
    if (facts.tacticHas("depthwise"))
        return "CudaDepthwise" + layer;
    return "Cask" + layer;
}

} // namespace

char const* publishedName(PaddingMode mode)
{
    constexpr char const* kNames[kPaddingModeCount] = {"kEXPLICIT_ROUND_DOWN", "kEXPLICIT_ROUND_UP", "kSAME_UPPER",
                                                       "kSAME_LOWER",          "kCAFFE_ROUND_DOWN",  "kCAFFE_ROUND_UP"};
    return kNames[int(mode)];
}

void addConvolution(LayerFacts& facts, WindowKind kind, KernelWindowAttrs const& a, Epilogue const& epilogue,
                    size_t weights)
{
    std::string const layer = kind == WindowKind::kConvolution ? "Convolution" : "Deconvolution";
    facts.kind(kernelKind(facts, layer), layer);
    std::vector<int64_t> const w = numbersOf(facts.input(weights)->shape);
    ir::Value const* const bias = facts.input(weights + 1);
    facts.add("Kernel", std::vector<int64_t>(w.begin() + 2, w.end()));
    facts.add("PaddingMode", publishedName(a.paddingMode));
    facts.add("PrePadding", a.prePadding);
    facts.add("PostPadding", a.postPadding);
    facts.add("Stride", a.strides);
    facts.add("Dilation", a.dilations);
    facts.add("OutMaps", kind == WindowKind::kConvolution ? w[0] : w[1] * a.groups);
    facts.add("Groups", a.groups);
    facts.addWeights("Weights", facts.input(weights));
    facts.addWeights("Bias", bias);
    facts.addFlag("HasSparseWeights", false);
    addActivation(facts, epilogue);
    facts.addFlag("HasBias", bias != nullptr);
    facts.addFlag("HasReLU", epilogue.activation.kind == int32_t(activation::Kind::kRelu));
}

} // namespace tw::ops
