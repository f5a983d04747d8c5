// SPDX-License-Identifier: Apache-2.0
// Which elements the CPU's kernels mix for each output of an axis.
#pragma once

#include "ops/resize/op.h"
#include "tactic/vector_tactic.h"

namespace tw::ops::resize {

inline constexpr int kMaxTaps = 4;

// Fraction number / unit of the coordinate of output o, unit > 0.
struct Coordinate
{
    int64_t number, unit;
    int64_t floor() const { return number >= 0 ? number / unit : -((-number + unit - 1) / unit); }
};
Coordinate coordinateOf(Attrs const& a, Axis const& axis, int64_t o);

// [out] outputs of an axis, each from kMaxTaps elements; unused taps have weight 0, and linear ones are the two in the middle.
template <class Acc>
struct TapTable
{
    int32_t* index; // [out, kMaxTaps]
    Acc* weight;    // [out, kMaxTaps]
};

// Acc: float or double.
template <class Acc>
void fillTable(Attrs const& a, Axis const& axis, TapTable<Acc> t);

extern VectorTactic const kPlanesAvx512, kPlanesAvx2; // cpu_planes.cpp

} // namespace tw::ops::resize
