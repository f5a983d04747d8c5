// SPDX-License-Identifier: Apache-2.0
// Histograms of |x|, one for each tensor that is calibrated.
//
// The range begins as the largest |x| of the first values that are not all zero; a larger one doubles it as often as
// needed, and each time pairs of bins become one. Bins are integers and borders move by powers of two, so that the
// histogram does not depend on how values are shared out to threads.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/tensor.h"
#include "base/workers.h"

namespace tw::calibrate {

inline constexpr int kBins = 2048;
using Bins = std::array<uint64_t, kBins>;

struct Histogram
{
    // Bin b holds the values with b <= |x| * kBins / range() < b + 1. Zeros are in none of them: every scale keeps
    // them as they are.
    Bins bins{};
    uint64_t zeros = 0;
    float first = 0;      // the range at first; 0: there has been nothing but zeros
    int doublings = 0;    // of the range since
    float largest = 0;    // |x|, exactly
    bool isFinite = true; // false: there was an infinity or a NaN; those are not counted

    double range() const;
    double binWidth() const { return range() / kBins; }
    uint64_t count() const; // of all values
    bool operator==(Histogram const&) const = default;
};

// Adds values to histograms; keeps the memory that this takes.
class Tally
{
public:
    explicit Tally(Workers& workers);
    ~Tally();
    // f32 or f16, in any format.
    void add(TensorRef const& values, Histogram& to);

private:
    struct Part;
    Workers& workers_;
    std::vector<std::unique_ptr<Part>> parts_; // one for each worker
};

// The histogram cache of legacy calibrators, which may try other quantiles without new batches. A text of our own:
//
//   TRT-8503-CalibrationHistograms-1
//   input: 40000000 1 407fe000 120 1 0:5 17:2
//
// how many tensors there are, so that a text that was cut is known, and for each tensor its name, the first range (bits as hexadecimal digits), the doublings since, the largest magnitude
// (bits), the number of zeros, 1 (0: it was not finite), and each bin that is not empty with its count.
using NamedHistograms = std::vector<std::pair<std::string, Histogram>>;

std::string writeHistograms(NamedHistograms const& list, int version);
// Strict, as readTable() is; of any version.
Result<NamedHistograms> readHistograms(std::string_view text);

} // namespace tw::calibrate
