// SPDX-License-Identifier: Apache-2.0
// Where the elements of an axis stand in x, for kernels: exact, by one multiplication and one division; and what the
// kernels have in common whose text knows the sizes.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/cuda/common/params.h"
#include "ops/resize/op.h"
#include "tactic/tactic.h"

namespace tw::ops::resize {

// Element o of y stands at (times * o + plus) / by in x, rounded down: exact. `by` is added to keep it from going below
// zero, and 1 taken from the quotient.
struct Scale
{
    cuda::Div by, step; // step: times, 1 where that is 0
    int64_t times = 0, plus = 0, in = 1, out = 1;
    float inverse = 1; // of `by`
    int32_t pad = 0;
};
Scale scaleOf(Attrs const& a, Axis const& axis);
bool isLong(Scale const& s); // coordinates take 64 bits

// Scale again, Taps (two elements and the second's weight) and tapsOf(), as text; its $nearest$ is true or false.
extern char const* const kScaleText;

// Rows of y that a thread or block walks down, and the rows of x that it sees.
struct Bands
{
    int64_t rows = 1, count = 1, seen = 1;
    bool isPeriodic = false; // every band lies alike between rows of x
};
Bands bandsOf(Scale const& tall, int64_t mostRows, bool isNearest);
// Both, and the scales, as constants of a text: TALL, WIDE, TALL_X, WIDE_X, ROWS, BANDS, SEEN, kNearest, IS_PERIODIC;
// element o of an axis of y stands at (TIMES o + PLUS) / BY - 1 of x (TIMES_W ... along rows). Defines mixed().
std::string sizesText(Scale const& tall, Scale const& wide, Bands const& bands, bool isNearest);
// Whether the last two axes alone change, and 32 bits count all elements.
Support supportsLastAxes(Problem const& p);
// Whether these kernels can: floating, nearest or linear, the last two axes only, their sizes known.
Support supportsKnown(Problem const& p);

} // namespace tw::ops::resize
