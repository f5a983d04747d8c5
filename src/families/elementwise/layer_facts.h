// SPDX-License-Identifier: Apache-2.0
// What the inspector says of expressions on elements, and of activations that other layers end with.
#pragma once

#include "families/elementwise/activate.h"
#include "tactic/layer_facts.h"

namespace tw::ops {

// "Relu", "Swish"; empty for none.
std::string activationName(FusedActivation const& f);

// A PointWise layer: `operations` without what declares their variables ("v0 = Add(arg0, arg1)").
void addExpression(LayerFacts& facts, size_t inputs, std::vector<std::string> const& operations,
                   std::vector<std::string> const& literals);
// One function of all inputs.
void addFunction(LayerFacts& facts, std::string const& name);

// Activation as published: NONE, RELU, CLIPPED_RELU; else GENERIC, with the function as an expression.
void addActivation(LayerFacts& facts, FusedActivation const& f);

} // namespace tw::ops
