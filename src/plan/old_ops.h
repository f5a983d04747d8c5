// SPDX-License-Identifier: Apache-2.0
// Ops and tactics that older plans name and that are others today. Until format 1.4 matrix products, convolutions and
// what was fused with them were ops of their own each (docs/adr/0006-one-op-with-an-epilogue.md); until 1.5 the ids of
// all tactics were made with another hash (docs/adr/0010-content-is-hashed-by-xxh3.md).
#pragma once

#include <string>
#include <vector>

#include "ir/attrs.h"
#include "ir/graph.h"

namespace tw::plan {

// Makes today's op, attributes and inputs of a node's; others stay as they are.
void renewNode(std::string& op, std::vector<ir::FieldValue>& fields, std::vector<ir::Value*>& inputs);

// Makes today's tactic of one that was chosen; others stay as they are. Names of tactics are others since 1.5, too
// (tactic/former_names.h). One that has no counterpart is not found when the plan is loaded, which then runs the plain
// kernel and says so.
void renewTactic(uint64_t& id, std::string& name, int version);

} // namespace tw::plan
