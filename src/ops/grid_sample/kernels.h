// SPDX-License-Identifier: Apache-2.0
// Samples of f32 at points of f32, a vector of points at a time; one function for each instruction set.
#pragma once

#include <cstdint>

namespace tw::ops::grid_sample {

// One image.
struct Sampling
{
    bool isNearest, clamps, alignCorners; // else linear; else what is outside is 0
    int64_t height, width, channels, points;
};

// Points [first, last) of every channel: grid [points, 2], x [channels, height, width], y [channels, points]. There are pixels, and
// fewer than 2^31 of a channel.
using SamplePoints = void(Sampling const& s, float const* x, float const* grid, int64_t first, int64_t last, float* y);

} // namespace tw::ops::grid_sample

namespace tw::avx2 {
extern ops::grid_sample::SamplePoints samplePoints;
}
namespace tw::avx512 {
extern ops::grid_sample::SamplePoints samplePoints;
}
