// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::scatter {

// A tuple of indices names a slot of y: a slice (nd) or an element.
struct Params
{
    void const *x = nullptr, *j = nullptr, *u = nullptr;
    // Of each slot, 1 + the tuple, or 0; null: every tuple counts. Of a reduction: its numbers; null: y holds them.
    void *y = nullptr, *last = nullptr;
    cuda::u64 units = 0, tail = 0;              // of the copy; elements after its units
    cuda::u64 slots = 0, tuples = 0, count = 0; // count: units of u
    cuda::Loop<1> loop;                         // element: over u, what its coordinates say of the slot
    cuda::i64 size[8] = {}, stride[8] = {};     // of what the indices step over, in slots
    cuda::Div block;                            // units of a slice
    cuda::i32 indices = 1, isElement = 0;
};

} // namespace tw::ops::scatter
