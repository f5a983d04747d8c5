// SPDX-License-Identifier: Apache-2.0
// Steps without work: values that are parts of others.
#pragma once

#include "runtime/block.h"

namespace tw::runtime {

// The root of the value's storage, and bytes into it.
struct Storage
{
    int root;
    int64_t offset;
};
Storage storageOf(Instance const& inst, int value);

// Realizes what the ops' aliases allow: sets root, rootOffset and stride of values and marks the steps that need not
// run. Views come first; then joins, the last one first, so that a join of a join's inputs becomes a part of it. A join
// in channels-last may be realized in part: its kernel leaves inputs alone that lie in their place.
void realizeAliases(Instance& inst);

// Puts what a placed instance keeps in its arena where a larger instance of the same block has it: memory that is
// planned anew for smaller sizes can take more, since other gaps are left. Nothing is changed, and the answer is false,
// unless each value and workspace has a place there that is as large and kept as long.
bool placeLike(Instance& instance, Instance const& larger);

} // namespace tw::runtime
