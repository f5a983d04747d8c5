// SPDX-License-Identifier: Apache-2.0
// Where the elements of an axis stand in x, for kernels: exact, by one multiplication and one division; and what the
// kernels have in common that know the sizes.
#pragma once

#include <cstdint>
#include <string>

#include "ops/resize/op.h"
#include "ops/resize/resize_params.h"
#include "tactic/cuda_tactic.h"
#include "tactic/tactic.h"

namespace tw::ops::resize {

Scale scaleOf(Attrs const& a, Axis const& axis);
bool isLong(Scale const& s); // coordinates take 64 bits

// Rows of y that a thread or block walks down, and the rows of x that it sees.
struct Bands
{
    int64_t rows = 1, count = 1, seen = 1;
    bool isPeriodic = false; // every band lies alike between rows of x
};
Bands bandsOf(Scale const& tall, int64_t mostRows, bool isNearest);
// What is settled of images resized along their last two axes when the text is written.
struct ImagePlan
{
    Scale tall, wide;
    Bands bands;

    explicit ImagePlan(Problem const& p);
};
// Both, and the scales: what resize_sizes.cuh reads.
std::string sizeConstants(Scale const& tall, Scale const& wide, Bands const& bands, bool isNearest);
// Whether the last two axes alone change, and 32 bits count all elements.
Support supportsLastAxes(Problem const& p);
// Whether these kernels can: floating, nearest or linear, the last two axes only, their sizes known.
Support supportsKnown(Problem const& p);

// CUDA tactics that stand in files of their own.
extern CudaTactic const kLanes, kNhwc, kNhwcF32, kNhwcI8, kPlanes, kRows, kStrips;

} // namespace tw::ops::resize
