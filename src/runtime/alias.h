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

// Lets what the body of a loop carries stay where it is: realizes, behind realizeAliases(), that the next value of one of the
// first `carried` inputs lies where that input does, where nothing but ops that write in place lies between them
// (OpDef::writesInPlace) and nobody reads an old value behind what overwrites it. Where the next value is another one, those
// ops write over the one that the trip begins with all the same: the loop has its own copy of it.
void realizeUpdates(Instance& body, size_t carried);
// Behind the placing of regions: what a loop begins with is made where the loop leaves its result, where its body writes over it
// and nobody else reads it any more. Else the loop copies it there.
void realizeFirstValues(Instance& inst);
// Whether the next value of carried value i lies where it does; whether a trip writes over it.
bool isUpdatedInPlace(Instance const& body, size_t i);
bool isOverwritten(Instance const& body, size_t i);

// Puts what a placed instance keeps in its arena where a larger instance of the same block has it: memory that is
// planned anew for smaller sizes can take more, since other gaps are left. Nothing is changed, and the answer is false,
// unless each value and workspace has a place there that is as large and kept as long.
bool placeLike(Instance& instance, Instance const& larger);

} // namespace tw::runtime
