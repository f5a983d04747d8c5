// SPDX-License-Identifier: Apache-2.0
// What kernels of sums of i8 end with (docs/adr/0012-int8-in-the-graph.md).
#pragma once

#include <string>

#include "base/types.h"
#include "kernels/cuda/common/integer_end_params.h"

namespace tw::cuda {

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
