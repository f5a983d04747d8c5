// SPDX-License-Identifier: Apache-2.0
#include "families/gemm/layer_facts.h"

#include "families/elementwise/layer_facts.h"

namespace tw::ops {

namespace {

char const* publishedName(matrix_multiply::MatrixOperation o)
{
    constexpr char const* kNames[] = {"kNONE", "kTRANSPOSE", "kVECTOR"};
    return kNames[int(o)];
}

// What comes after a product: bias and activation.
void addEnd(LayerFacts& facts, ir::Value const* bias, Epilogue const& epilogue)
{
    facts.addWeights("Bias", bias);
    addActivation(facts, epilogue);
    facts.addFlag("HasBias", bias != nullptr);
    facts.addFlag("HasReLU", epilogue.activation.kind == int32_t(activation::Kind::kRelu));
}

} // namespace

void addProduct(LayerFacts& facts, matrix_multiply::Attrs const& a)
{
    facts.kind("MatrixMultiply");
    facts.add("MatrixOpA", publishedName(a.a));
    facts.add("MatrixOpB", publishedName(a.b));
    ir::Value const* const left = facts.input(0);
    facts.addWeights("Weights", left->isConstant() ? left : facts.input(1));
    addEnd(facts, facts.input(Epilogue::kBias), a.epilogue);
}

void addFullyConnected(LayerFacts& facts, Epilogue const& epilogue)
{
    facts.kind(facts.tacticHas("cublas") ? "CublasConvolution" : "CaskConvolution", "Convolution");
    std::vector<int64_t> const x = numbersOf(facts.input(0)->shape), y = numbersOf(facts.node.outputs[0]->shape);
    std::vector<int64_t> const ones{1, 1}, zeros{0, 0};
    facts.add("Kernel", std::vector<int64_t>(x.end() - 2, x.end()));
    facts.add("PaddingMode", "kEXPLICIT_ROUND_DOWN");
    facts.add("PrePadding", zeros);
    facts.add("PostPadding", zeros);
    facts.add("Stride", ones);
    facts.add("Dilation", ones);
    facts.add("OutMaps", y[y.size() - 3]);
    facts.add("Groups", int64_t(1));
    facts.addWeights("Weights", facts.input(1));
    facts.addFlag("HasSparseWeights", false);
    addEnd(facts, facts.input(Epilogue::kBias), epilogue);
}

} // namespace tw::ops
