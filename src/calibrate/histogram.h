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
#include <vector>

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

} // namespace tw::calibrate
