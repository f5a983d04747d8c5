// SPDX-License-Identifier: Apache-2.0
// Expressions of steps as device code.
#pragma once

#include <span>
#include <string>

#include "base/step_code.h"
#include "base/types.h"

namespace tw::ops {

// Source of `float name(float v0, float v1, ...)` of so many inputs, as exact as results of type `result` need, with
// what it includes. `rounds`: each step is rounded by itself, as where something is i8
// (docs/adr/0012-int8-in-the-graph.md).
std::string stepsSource(std::string const& name, std::span<ExpressionStep const> steps, int inputs, DataType result,
                        bool rounds);

} // namespace tw::ops
