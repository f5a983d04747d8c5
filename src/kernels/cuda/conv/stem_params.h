// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/epilogue_params.h"

namespace tw::cuda::stem_f16 {

// Filters come as [k, paddedK], of FP32 rounded to TF32: tap (c, r, s) at (c filterH + r) 8 + s + shift(), zeros
// elsewhere; aligned to 16 bytes.
template <class Element>
struct ArgsOf : OutputOf<Element>
{
    Element const* x = nullptr; // aligned to 16 bytes
    Element const* filters = nullptr;
    i32 h = 0, w = 0, outH = 0, padH = 0;
};

} // namespace tw::cuda::stem_f16
