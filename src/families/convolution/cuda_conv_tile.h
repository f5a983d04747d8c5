// SPDX-License-Identifier: Apache-2.0
// What convolutions share that keep tiles of x with their borders in shared memory (cuda_conv_tile.cuh).
#pragma once

#include <string>

#include "families/convolution/cuda_conv_f16.h"
#include "families/convolution/cuda_conv_patch_params.h"
#include "kernels/cuda/common/generate.h"

namespace tw::ops::conv_f16 {

constexpr int64_t kMostTileBytes = 112 * 1024; // of shared memory, so that two blocks fit a multiprocessor

// Of 8 channels, that a pixel of x has.
inline int64_t unitsOf(Geometry const& g)
{
    return cuda::ceilDiv(g.c, 8);
}
// With so many of them in shared memory at a time.
inline int64_t passesOf(Geometry const& g, int64_t units)
{
    return cuda::ceilDiv(unitsOf(g), units);
}
// Fewer units than there are make passes; passes for so little do not pay.
inline bool arePasses(Geometry const& g, int64_t units)
{
    return units == unitsOf(g) || (units < unitsOf(g) && units >= 4);
}

// Not transposed, FP16 or what takes its place, known filters and bias, one group, no strides, sizes that count in 32 bits.
Support supportsTiles(Problem const& p, Arithmetic a);
// The end of sums, and the constants UNITS, PASSES, TAIL, RESIDUAL.
std::string tileSource(Problem const& p, Geometry const& g, int64_t units);
// All but the numbers of tiles.
PatchParams tileParams(Geometry const& g, CudaLaunch const& launch, RunArgs const& args);

} // namespace tw::ops::conv_f16
