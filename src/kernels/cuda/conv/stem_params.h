// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/epilogue_params.h"
#include "kernels/cuda/common/params.h"

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

namespace tw::cuda::stem_i8 {

struct Args
{
    i8 const* x = nullptr; // linear
    // [k, Spec::filterBytes()], zeros where there are fewer taps, rows or channels
    i8 const* filters = nullptr;
    void* y = nullptr;
    IntegerEndArgs end;
    i64 pixelY = 0, pixelResidual = 0; // elements
    i32 h = 0, w = 0, outH = 0, outW = 0, padH = 0, padW = 0;
    i32 k = 0, filters8 = 0; // filters, and rounded up to 8
};

} // namespace tw::cuda::stem_i8
