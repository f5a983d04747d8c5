// SPDX-License-Identifier: Apache-2.0
// What hosts hand to the kernels of this folder.
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::reduce {

struct Params
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::u64 results = 0, count = 0;
    cuda::Loop<1> kept, reduced; // offsets in x
};

// The kernels know what y and the parts are of; to the host it is void.
template <class Number, class Joined>
struct ColumnsParams
{
    void const* x = nullptr;
    Number* y = nullptr;
    Joined* parts = nullptr;                          // [shares, columns]; null: there is one share
    cuda::i64 count = 0, n = 0, inner = 0, pitch = 0; // columns of a row, elements from one to the next
    cuda::u64 packs = 0, columns = 0;                 // of all outer matrices in a row
    cuda::Div packsOfRow, shares;
};

struct RowsParams
{
    void const* x = nullptr;
    void* y = nullptr;
    void* parts = nullptr; // [results, shares], of accumulators
    cuda::u64 results = 0, count = 0;
    cuda::Div shares;
};

struct ShortRowsParams
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::u64 results = 0, count = 0;
};

} // namespace tw::ops::reduce
