// SPDX-License-Identifier: Apache-2.0
// Short rows off 16-byte boundaries, pieced together in shared memory: for some rows of y TMA brings the
// runs of memory that they come from, a warp puts the elements in their places, and TMA takes the rows
// away. Global memory sees nothing but whole aligned words; capability 9.0.
#pragma once

#include "families/copy/cuda_strided_copy.h"
#include "ops/slice/op.h"

namespace tw::ops {

// Where a piece of each row of y comes from; all counts in elements.
struct SegmentSource
{
    int input = 0;
    int64_t count = 0;                   // elements of x
    int64_t first = 0;                   // where the piece of the first row that is no border begins
    int64_t planeStep = 0, lineStep = 0; // in x
    int64_t column = 0, length = 0;      // in y
};

// y: `lines` rows a plane, of which [low, high) are no border.
struct Segments
{
    int64_t elementBytes = 0, rows = 0, lines = 0, columns = 0, low = 0, high = 0;
    std::vector<SegmentSource> sources; // side by side; several have one plane and no border
    bool fits = false;                  // else: y is nothing of the kind
};

// Of a box whose x and y are not looked at; `first` is the element of x that box.x would be.
Segments segmentsOf(Box const& box, int64_t xCount, int64_t first);

Support supportsSegments(Problem const& problem, Segments const& segments);
std::vector<Config> configsOfSegments(Segments const& segments);
// `fillInput`: position of the optional input with what borders are filled with, -1: none, zero.
std::unique_ptr<CudaKernels> segmentKernels(Segments const& segments, Config const& config, int fillInput = -1);

// The tactic of an op whose runs `of` tells.
template <Segments (*of)(Problem const&), int fillInput = -1>
constexpr CudaTactic segmentsTactic(char const* name)
{
    return CudaTactic(
        name, 1, [](Problem const& p, Config const& c) { return segmentKernels(of(p), c, fillInput); },
        [](Problem const& p) { return supportsSegments(p, of(p)); },
        [](Problem const& p) { return configsOfSegments(of(p)); });
}

// The generated kernel behind slice and padding: y[I] = x[start + I * stride], outside x by a mode.

using StepsOfRun = slice::Steps (*)(ir::Node const&, RunArgs const&);

// `fillInput`: position of the optional input with the fill value, -1: none, zero.
std::unique_ptr<CudaKernels> sliceKernels(Problem const& problem, slice::Mode mode, int fillInput, StepsOfRun stepsOf);

// Of a problem whose steps are known: for the kernels of cuda_runs.h.
Segments segmentsOfSlice(Problem const& problem, slice::Mode mode, slice::Steps const& steps);

} // namespace tw::ops
