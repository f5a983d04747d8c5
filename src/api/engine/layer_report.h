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

// The layers without a fast kernel by what records of all layers say (`Name` and addReport()), and their share of the
// time; null where it is no more than 3 %.
nlohmann::ordered_json withoutFastKernel(nlohmann::ordered_json const& layers);
// The same of a plan's choices.
nlohmann::ordered_json withoutFastKernel(ir::Graph const& graph, plan::Block const& chosen);
// For the log: what it is, then a line for each layer.
std::vector<std::string> linesOf(nlohmann::ordered_json const& withoutFastKernel);

// "FP32", as in formats and types of tensors.
char const* typeText(DataType type);

} // namespace tw::api
