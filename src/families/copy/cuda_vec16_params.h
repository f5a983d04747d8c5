// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/types.h"

namespace tw::ops {

// Elements of `unitBytes` around x, [low, high) of them there, as Piece wants them.
struct ContiguousSpan
{
    void const* x = nullptr; // aligned down to 16 bytes
    cuda::i64 at = 0;        // where element 0 lies from there
    cuda::i64 begin = 0, span = 0;
};

} // namespace tw::ops
