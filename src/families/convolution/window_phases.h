// SPDX-License-Identifier: Apache-2.0
// One axis of a window as a kernel loops over it, for convolutions and transposed ones alike: outputs in phases that
// take the same filter elements at fixed distances. A transposed convolution with stride S has S of them: output
// o = phase + q S takes those elements f for which phase + padding - f dilation is a multiple of S.
#pragma once

#include <cstdint>
#include <vector>

#include "families/convolution/kernel_window.h"

namespace tw::ops {

// The filter's elements in classes, one for each phase, in the order of the inputs that they read.
using Classes = std::vector<std::vector<int64_t>>;
Classes classesOf(bool transposed, int64_t window, int64_t stride, int64_t dilation);

// Outputs first + q step, q < count, which take the taps of one class: tap t of output q reads input q stride +
// offsets[t]. Offsets rise.
struct Phase
{
    int64_t first = 0, step = 1, count = 0, stride = 1, in = 0;
    size_t tapClass = 0;
    std::vector<int64_t> offsets;
};
// axis: 0 to 2 of the geometry.
std::vector<Phase> phasesOf(KernelWindowGeometry const& g, int axis, bool transposed, Classes const& classes);

// Taps [first, first + count) lie in the image.
struct TapRange
{
    int64_t first = 0, count = 0;
};
TapRange tapsInside(Phase const& p, int64_t q);

} // namespace tw::ops
