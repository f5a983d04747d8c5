// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph.h"

namespace tw::api {

// A scalar network input that is start or step of a fill: shape tensor and data.
bool isScalarOfFill(ir::Graph const& g, ir::Value const* v);

} // namespace tw::api
