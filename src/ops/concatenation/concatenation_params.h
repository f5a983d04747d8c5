// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "families/copy/copy_params.h"
#include "kernels/cuda/common/params.h"

namespace tw::ops::concatenation {

constexpr int kMostInputs = 64; // of one launch
constexpr int kMostJoined = 8;  // of packs of 16 bytes

// Rows of one input to rows of y; all counts in units.
struct RowParams
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::u64 count = 0;
    cuda::Div row;                                        // units of x in a row
    cuda::i64 xRow = 0, yRow = 0, yBegin = 0, length = 0; // length: of a row of x
};

struct WholeParams
{
    void* y = nullptr;
    cuda::u64 count = 0; // units of y
    cuda::Div columns;   // of a row of y
    cuda::i64 inputs = 0;
    void const* x[kMostInputs] = {};
    cuda::i64 end[kMostInputs] = {}, step[kMostInputs] = {}; // columns of y; units from row to row of an input
};

struct Vec16Params
{
    void* y = nullptr;
    cuda::u64 count = 0; // units of y
    cuda::Div columns, segments;
    cuda::i64 inputs = 0, each = 1;
    cuda::i64 end[kMostJoined + 1] = {}, step[kMostJoined] = {}; // as above
    ContiguousSpan x[kMostJoined];
};

} // namespace tw::ops::concatenation
