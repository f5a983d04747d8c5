// SPDX-License-Identifier: Apache-2.0
// Sums of convolutions with few filters over channels-last images: lanes are input channels, which a tile of neighbouring
// outputs adds up window by window, and at its end across lanes. One table for each instruction set.
#pragma once

#include <cstdint>

namespace tw::kernels {

inline constexpr int kMostFewFilters = 4;

struct FewFiltersTile
{
    float const* x = nullptr;                      // the pixel of the first tap in the first row, for the first output
    float const* w = nullptr;                      // of that row and tap: [rows][taps][filters][channels]
    int64_t rows = 0, rowStep = 0, rowWeights = 0; // inside the image; floats from one to the next
    int64_t taps = 0, tapStep = 0;
    int64_t pixelStep = 0; // from output to output
    int64_t channels = 0;  // whole vectors
    float* sums = nullptr; // [outputs][lanes of a vector], of which the first `filters` are written
};

struct FewFilters
{
    // Outputs of a tile: many, some, one.
    static constexpr int kSizes = 3;
    int outputs[kSizes] = {};
    void (*run[kSizes])(FewFiltersTile const&) = {};
};

} // namespace tw::kernels

namespace tw::avx2 {
extern kernels::FewFilters const kFewFilters[kernels::kMostFewFilters]; // by filters - 1
}
namespace tw::avx512 {
extern kernels::FewFilters const kFewFilters[kernels::kMostFewFilters];
}
