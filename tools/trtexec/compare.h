// SPDX-License-Identifier: Apache-2.0
// How far an output lies from its recorded reference.
#pragma once

#include <span>
#include <string>

#include "options.h"
#include "recorded.h"

namespace tw::trtexec {

struct Comparison
{
    double maxAbsolute = 0;
    // Of |out - ref| / |ref|, over the elements with |ref| > 1e-5 * max|ref|: below, the ratio says nothing.
    double maxRelative = 0;
    double cosine = 1; // 1 when both are zero everywhere
    // sum (out - ref)^2 and sum ref^2, of numbers that are finite on both sides.
    double noise = 0, signal = 0;
    size_t failures = 0;
    size_t firstFailure = 0;
    bool passed = false;

    double sqnrDb() const;      // 10 log10(signal / noise): infinite without noise
    double relativeRms() const; // sqrt(noise / signal): the loss of --maxLoss; infinite where a special number differs
};

// `out` has reference.count() elements in the same order. A NaN or infinity matches only its like.
Comparison compareTensors(std::span<double const> out, RecordedTensor const& reference, Tolerance const& tolerance);

std::string comparisonText(std::string const& name, Comparison const& comparison);

} // namespace tw::trtexec
