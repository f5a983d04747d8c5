// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/reduce/op.h"
#include "tactic/tactic.h"

namespace tw::ops::reduce {

// Everything that the op allows.
Result<void> runPlain(ir::Node const& node, RunArgs& args);

} // namespace tw::ops::reduce
