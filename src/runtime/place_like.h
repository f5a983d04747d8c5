// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/block.h"

namespace tw::runtime {

// Puts what a placed instance keeps in its arena where a larger instance of the same block has it: memory that is
// planned anew for smaller sizes can take more, since other gaps are left. Nothing is changed, and the answer is false,
// unless each value and workspace has a place there that is as large and kept as long.
bool placeLike(Instance& instance, Instance const& larger);

} // namespace tw::runtime
