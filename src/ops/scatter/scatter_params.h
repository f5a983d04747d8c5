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

// Of kernels that reduce into whole rows; the lists of tuples lie in the workspace.
constexpr cuda::u32 kColumns = 4; // of a thread
constexpr cuda::u32 kScanLanes = 128, kSlice = 4096, kSliceLanes = 256;

struct RowParams
{
    Params scatter;
    cuda::u32 *counts = nullptr, *offsets = nullptr; // of each slot: how many tuples name it, where its list begins
    cuda::u32 *places = nullptr, *order = nullptr;   // of each tuple: which one of its slot it is; the lists
    cuda::u32* sums = nullptr;                       // of slices of the counts
};

} // namespace tw::ops::scatter
