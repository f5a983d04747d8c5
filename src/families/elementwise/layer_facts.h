// SPDX-License-Identifier: Apache-2.0
// What the inspector says of expressions on elements, and of activations that other layers end with.
#pragma once

#include "families/elementwise/epilogue.h"
#include "tactic/layer_facts.h"

namespace tw::ops {

// "Relu", "Swish"; empty for none.
std::string activationName(FusedActivation const& f);

// Each step as "v0 = Add(arg0, arg1)", of so many arguments; numbers also to `literals`, where given.
std::vector<std::string> operationsOf(std::vector<ExpressionStep> const& steps, size_t inputs,
                                      std::vector<std::string>* literals = nullptr);
// A PointWise layer: `operations` without what declares their variables ("v0 = Add(arg0, arg1)").
void addExpression(LayerFacts& facts, size_t inputs, std::vector<std::string> const& operations,
                   std::vector<std::string> const& literals);
// One function of all inputs.
void addFunction(LayerFacts& facts, std::string const& name);

// Activation as published: NONE, RELU, CLIPPED_RELU; else GENERIC, with the function as an expression, or with the
// steps.
void addActivation(LayerFacts& facts, Epilogue const& epilogue);

} // namespace tw::ops
