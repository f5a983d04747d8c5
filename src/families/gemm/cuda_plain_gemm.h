// SPDX-License-Identifier: Apache-2.0
// The generated plain matrix product y = f(a b + bias + residual), for the matrix product, the fully connected layer
// and what is fused with them: tiles of 64 x 64 in shared memory, float sums, any strides.
#pragma once

#include "families/elementwise/activate.h"
#include "ops/matrix_multiply/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops {

using MultiplyGeometry = matrix_multiply::Geometry (*)(ir::Node const&, RunArgs const&);

// Positions of optional inputs, -1: none: one number for each column of y, and a tensor of y's shape.
CudaKernels multiplyKernels(Problem const& problem, int biasInput, int residualInput, FusedActivation const& activation,
                            MultiplyGeometry geometryOf);

// Of matrix_multiply and of fully_connected (x [n, v], w [k, v]), from the tensors of a run.
matrix_multiply::Geometry multiplyGeometry(ir::Node const& node, RunArgs const& args);
matrix_multiply::Geometry connectedGeometry(ir::Node const& node, RunArgs const& args);

} // namespace tw::ops
