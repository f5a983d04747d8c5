// SPDX-License-Identifier: Apache-2.0
// From histograms to thresholds: the magnitude |T| that becomes 127. What is larger is clamped.
//
// Entropy: for each position i in [128, 2048),
//   P = bins[0 .. i), the last of them with all that is behind it added, divided by its sum
//   Q = bins[0 .. i) as 128 levels of equal width can tell them, divided by its sum
//   D(i) = sum P log(P / Q)
// and |T| = (m + 0.5) bin widths for the position m with the least D, at most the largest magnitude.
//
// What the publications leave open: bin j is in level floor(j * 128 / i). Where Q is 0 and P is not (the last bin is
// empty, and there is something behind it), D is infinite. All bins are a position too, the last one, with the largest
// magnitude as |T|; and of equal D the last position counts. Else tensors of few values lose all but the smallest: where
// one bin alone is filled before i, P and Q are the same however much is behind it.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "calibrate/histogram.h"

namespace tw::calibrate {

inline constexpr int kLevels = 128;

// What `levels` levels of equal width leave of the bins: each level's sum, shared among its bins that are not empty.
std::vector<double> throughLevels(std::span<uint64_t const> bins, int levels);
// D(position); infinity where it has no finite value.
double divergence(std::span<uint64_t const> bins, int position, int levels = kLevels);
// The last m in [levels, bins.size()] with the least divergence; -1 where none is finite, since all bins are empty.
int leastDivergence(std::span<uint64_t const> bins, int levels = kLevels);

// All are 0 where there has been nothing but zeros.
double entropyThreshold(Histogram const& h);
double largestThreshold(Histogram const& h);
// The end of the first bin up to which there are at least `quantile` (in (0, 1]) of all values, zeros among them; never
// more than `cutoff` times the largest magnitude, nor than that itself. A cutoff of 0 is none.
double quantileThreshold(Histogram const& h, double quantile, double cutoff);

// What clamping at |T| costs: the energy of what lies beyond, sum of (|x| - T)^2 over |x| > T, by that of all, sum of x^2.
// Values count as the middles of their bins. 0 where there is no energy or no threshold.
double clippedShare(Histogram const& h, double threshold);
// Rounding to 256 steps leaves 40 dB and more of a signal that fills its range. A share of 1 % leaves 20 dB, so that
// beyond it clipping alone decides what an INT8 layer gets.
inline constexpr double kMostClipped = 0.01;

// How much one step of INT8 numbers stands for: |T| / 127 as a float; 0 where that is no normal number.
float scaleOf(double threshold);

} // namespace tw::calibrate
