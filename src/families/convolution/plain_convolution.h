// SPDX-License-Identifier: Apache-2.0
// The plain convolution, transposed or not.
#pragma once

#include "base/tensor.h"
#include "families/elementwise/activate.h"
#include "ops/convolution/op.h"

namespace tw::ops {

// Bytes of scratch: one output plane in float or int32.
int64_t convolvePlainWorkspaceBytes(TensorRef const& w, TensorRef const& y);
// y = f(conv(x, w) + b + residual); b and residual (of y's shape) may have null data; f32 or f16. The sum stays in
// float until it is stored.
void convolvePlain(WindowKind kind, KernelWindowAttrs const& a, TensorRef const& x, TensorRef const& w,
                   TensorRef const& b, TensorRef const& residual, FusedActivation const& f, TensorRef const& y,
                   void* workspace);
// The same of i8, with all that the node's inputs say.
void convolveIntegersPlain(convolution::Attrs const& a, std::span<TensorRef const> inputs, TensorRef const& y,
                           void* workspace);

} // namespace tw::ops
