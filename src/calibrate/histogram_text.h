// SPDX-License-Identifier: Apache-2.0
// The histogram cache of legacy calibrators, which may try other quantiles without new batches. A text of our own:
//
//   TRT-8503-CalibrationHistograms-1
//   input: 40000000 1 407fe000 120 1 0:5 17:2
//
// how many tensors there are, so that a text that was cut is known, and for each tensor its name, the first range (bits as hexadecimal digits), the doublings since, the largest magnitude
// (bits), the number of zeros, 1 (0: it was not finite), and each bin that is not empty with its count.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "calibrate/histogram.h"

namespace tw::calibrate {

using NamedHistograms = std::vector<std::pair<std::string, Histogram>>;

std::string writeHistograms(NamedHistograms const& list, int version);
// Strict, as readTable() is; of any version.
Result<NamedHistograms> readHistograms(std::string_view text);

} // namespace tw::calibrate
