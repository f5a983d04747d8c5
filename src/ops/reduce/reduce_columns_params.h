// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops::reduce {

// The kernels know what y and the parts are of; to the host it is void.
template <class Number, class Joined>
struct ColumnsParams
{
    void const* x = nullptr;
    Number* y = nullptr;
    Joined* parts = nullptr; // [shares, columns]; null: there is one share
    cuda::i64 count = 0, n = 0, inner = 0;
    cuda::u64 packs = 0, columns = 0; // of all outer matrices in a row
    cuda::Div packsOfRow, shares;
};

} // namespace tw::ops::reduce
