// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/params.h"

namespace tw::ops {

// a: the dimension y is dense in, b: the one x is. Positions in elements, from addresses that are multiples of 128
// bytes.
struct TileBox
{
    void const* x = nullptr;
    void* y = nullptr;
    cuda::i64 xBegin = 0, xEnd = 0; // what may be read
    cuda::i64 xAt = 0, yAt = 0;
    cuda::i64 a = 0, b = 0, aStep = 0, bStep = 0; // sizes; step of a in x, of b in y
    cuda::i64 present = 0;                        // of a, what comes from x; after it are zeros
    cuda::Loop<2> others;
};

} // namespace tw::ops
