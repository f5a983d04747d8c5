// SPDX-License-Identifier: Apache-2.0
// The plain matrix product, for the matrix product itself and for what is fused with it.
#pragma once

#include "base/tensor.h"
#include "ops/matrix_multiply/op.h"

namespace tw::ops {

int64_t multiplyPlainWorkspaceBytes(matrix_multiply::Attrs const& attrs, TensorRef const& a, TensorRef const& b);
// f32 or f16.
void multiplyPlain(matrix_multiply::Attrs const& attrs, TensorRef const& a, TensorRef const& b, TensorRef const& y,
                   void* workspace);

} // namespace tw::ops
