// SPDX-License-Identifier: Apache-2.0
// What matrix products and convolutions do with their float sums on the way to FP16 or FP32.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/cuda/common/epilogue_params.h"

namespace tw::cuda {

struct Epilogue
{
    bool single = false;   // y and residual are FP32, else FP16
    bool bias = true;      // float [n]
    bool residual = false; // laid out as y
    // y of v, the sum with its bias, and r, the residual's element or 0: `activation`, an expression of v (empty: v
    // itself), of v or of v + r; or what `end`, source of `float epilogue(float v, float r)`, makes of them.
    std::string activation, end;
    // y and residual are aligned to 16 bytes, and n, ldy and strides are multiples of alignment().
    bool aligned = true;

    int64_t elementBytes() const { return single ? 4 : 2; }
    int64_t alignment() const { return single ? 2 : 8; } // elements that are written at once
};

using Output = OutputOf<void>;

// `float epilogue(float v, float r)`.
std::string epilogueFunction(Epilogue const& e);
// That and the constants that rowsSource() reads. `chunk`: columns that a warp stages at once.
std::string epilogueConstants(Epilogue const& e, int chunk);
// struct Output and writeRows(). After the prelude and the constants.
std::string rowsSource(bool single = false);
// writeColumns(), after that: for sums whose rows are columns of y.
std::string columnsSource(bool single);
// The widest chunk, up to 64, that `columns` is a multiple of.
int chunkOf(int columns);

} // namespace tw::cuda
