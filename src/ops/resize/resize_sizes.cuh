// SPDX-License-Identifier: Apache-2.0
// For kernels that know the sizes: element o of an axis of y stands at (TIMES o + PLUS) / BY - 1 of x.
//   int TALL, WIDE, TALL_X, WIDE_X: of y, of x; ROWS of y that a thread or block walks down, BANDS of them, SEEN: rows
// of x
//   int TIMES, PLUS, BY, TIMES_W, PLUS_W, BY_W; float INVERSE, INVERSE_W: of BY; _W: along rows
//   bool kIsNearest, IS_PERIODIC: every band lies alike between rows of x
#pragma once

#include "kernels/cuda/common/device.cuh"

namespace tw::ops::resize {

// A row of y belongs to row i of x when it lies so far at most after the one before: on row i itself, it needs no
// other.
constexpr u32 LAST = kIsNearest ? BY - 1 : BY;
// Of known weights: the product with the larger one is the one that the next row has too.
TW_INLINE float mixed(float a, float b, float weight, bool isKnown)
{
    return !isKnown || weight < 0.5f ? fmaf(b, weight, a * (1.0f - weight)) : fmaf(a, 1.0f - weight, b * weight);
}

} // namespace tw::ops::resize
