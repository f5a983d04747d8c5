// SPDX-License-Identifier: Apache-2.0
// What was chosen for a layer and why: the part of the inspector's JSON that is our own (docs/formats/inspector.md).
#pragma once

#include <nlohmann/json.hpp>

#include "ir/graph.h"
#include "plan/plan.h"

namespace tw::api {

// Time, config and rivals of a layer's tactic; under "Precision" its type and the types that it is not in.
void addReport(nlohmann::ordered_json& layer, ir::Node const& node, plan::Choice const& choice);

// "FP32", as in formats and types of tensors.
char const* typeText(DataType type);

} // namespace tw::api
