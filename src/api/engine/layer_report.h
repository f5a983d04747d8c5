// SPDX-License-Identifier: Apache-2.0
// What was chosen for a layer and why: the part of the inspector's JSON that is our own (docs/formats/inspector.md).
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "ir/graph.h"
#include "plan/plan.h"

namespace tw::api {

// Time, limit, config and rivals of a layer's tactic; under "Precision" its type and the types that it is not in.
void addReport(nlohmann::ordered_json& layer, ir::Node const& node, plan::Choice const& choice);

// What the layers' times add up to, each where it is more than 3 % of all: `WithoutFastKernel`, by reason, and `Copies`.
void addSums(nlohmann::ordered_json& engine, ir::Graph const& graph, plan::Block const& chosen);
// The same for the log: a line for each reason, and one for copies.
std::vector<std::string> linesOfSums(nlohmann::ordered_json const& engine);

// "FP32", as in formats and types of tensors.
char const* typeText(DataType type);

} // namespace tw::api
