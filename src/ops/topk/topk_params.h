// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::topk {

// One level of the selection: slices of n elements in segments of as many as a block holds.
struct SelectParams
{
    void const* x = nullptr;
    cuda::u64 const* from = nullptr; // keys [slices, n], which the level before left
    cuda::u64* to = nullptr;         // keys [slices, segments, k]
    void *values = nullptr, *indices = nullptr;
    cuda::u64 axis = 0, n = 0; // elements of a slice of x, of a slice of this level
    cuda::i64 k = 0;
    cuda::Div inner, segments;
};

// Slices side by side.
struct ColumnParams
{
    void const* x = nullptr;
    void *values = nullptr, *indices = nullptr;
    cuda::u64 slices = 0, n = 0;
    cuda::Div inner;
};

} // namespace tw::ops::topk
