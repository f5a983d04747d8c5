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
    size_t failures = 0;
    size_t firstFailure = 0;
    bool passed = false;
};

// `out` has reference.count() elements in the same order. A NaN or infinity matches only its like.
Comparison compareTensors(std::span<double const> out, RecordedTensor const& reference, Tolerance const& tolerance);

std::string comparisonText(std::string const& name, Comparison const& comparison);

} // namespace tw::trtexec
