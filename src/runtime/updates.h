// SPDX-License-Identifier: Apache-2.0
// Loops without copies: what a loop carries and its body only writes into stays where it is.
#pragma once

#include "runtime/block.h"

namespace tw::runtime {

// Lets what the body of a loop carries stay where it is: realizes, behind realizeAliases(), that the next value of one of the
// first `carried` inputs lies where that input does, where nothing but ops that write in place lies between them
// (OpDef::inPlace) and nobody reads an old value behind what overwrites it. Where the next value is another one, those
// ops write over the one that the trip begins with all the same: the loop has its own copy of it.
void realizeUpdates(Instance& body, size_t carried);
// Behind the placing of regions: what a loop begins with is made where the loop leaves its result, where its body writes over it
// and nobody else reads it any more. Else the loop copies it there.
void realizeFirstValues(Instance& inst);
// Whether the next value of carried value i lies where it does; whether a trip writes over it.
bool isUpdatedInPlace(Instance const& body, size_t i);
bool isOverwritten(Instance const& body, size_t i);

} // namespace tw::runtime
