// SPDX-License-Identifier: Apache-2.0
// Of runs of n floats: the largest |x|, and how many |x| fall into each bin of a histogram. One table for each
// instruction set; all of them give the same numbers.
#pragma once

#include <cstdint>

namespace tw::kernels {

inline constexpr int kMagnitudeBins = 2048;
// Counters of one copy of the histogram: its bins, and places that zeros go to.
inline constexpr int kMagnitudeCounters = kMagnitudeBins + 16;
// Neighbours count in copies of their own, since they often fall into the same bin.
inline constexpr int kMagnitudeCopies = 2;

struct MagnitudeKernels
{
    // Bits of the largest |x|; those of infinity (0x7f800000) or more where one is not finite. 0 for n = 0.
    uint32_t (*largest)(float const* x, int64_t n);
    // counts[copy][min(int(|x| * binsPerUnit), kMagnitudeBins - 1)] += 1 for every x but 0. All x are finite;
    // |x| * binsPerUnit < 2^31; n < 2^32. counts: [kMagnitudeCopies][kMagnitudeCounters].
    void (*count)(float const* x, int64_t n, float binsPerUnit, uint32_t* counts);
};

extern MagnitudeKernels const kPlainMagnitudes;

} // namespace tw::kernels

namespace tw::avx2 {
extern kernels::MagnitudeKernels const kMagnitudes;
}
namespace tw::avx512 {
extern kernels::MagnitudeKernels const kMagnitudes;
}
