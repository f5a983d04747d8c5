// SPDX-License-Identifier: Apache-2.0
// What matrix products and convolutions do with their float sums on the way to FP16 or FP32.
#pragma once

#include <cstdint>
#include <string>

#include "base/types.h"
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

// What kernels of sums of i8 end with (docs/adr/0012-int8-in-the-graph.md).

struct IntegerEnd
{
    DataType store = DataType::kInt8; // y's: i8, f16, f32
    bool bias = false;                // f32
    bool residual = false;            // laid out as y
    DataType residualType = DataType::kInt8;
    bool innerScale = false, outputScale = false, table = false;
    std::string activation; // expression of v, exact; empty: none

    int64_t storeBytes() const { return int64_t(sizeOf(store)); }
    int64_t residualBytes() const { return residual ? int64_t(sizeOf(residualType)) : 0; }
    // What tells ends apart in names of kernels: "i8_br8_o", say.
    std::string name() const;
};

// What kernels/cuda/common/integer_end.cuh reads, and its text.
std::string integerEndSource(IntegerEnd const& end);

} // namespace tw::cuda
