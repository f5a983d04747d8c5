// SPDX-License-Identifier: Apache-2.0
// The generated kernel behind slice and padding: y[I] = x[start + I * stride], outside x by a mode.
#pragma once

#include "families/copy/cuda_segments.h"
#include "ops/slice/op.h"

namespace tw::ops {

using StepsOfRun = slice::Steps (*)(ir::Node const&, RunArgs const&);

// `fillInput`: position of the optional input with the fill value, -1: none, zero.
std::unique_ptr<CudaKernels> sliceKernels(Problem const& problem, slice::Mode mode, int fillInput, StepsOfRun stepsOf);

// Of a problem whose steps are known: for the kernels of cuda_runs.h.
Segments segmentsOfSlice(Problem const& problem, slice::Mode mode, slice::Steps const& steps);

} // namespace tw::ops
