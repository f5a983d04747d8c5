// SPDX-License-Identifier: Apache-2.0
// How generated kernels reduce numbers of a type, as expressions behind kCudaArithmetic.
#pragma once

#include <string>

#include "ops/reduce/op.h"

namespace tw::ops::reduce {

extern char const* const kCudaArithmetic;

struct CudaArithmetic
{
    char const* accumulator;              // FP32 and FP16 in float, integers exactly in 64 bits
    char const* number;                   // what elements are read as
    char const* compute;                  // what `result` gives
    char const *identity, *join, *result; // of a and b; of v, the reduced numbers, and count, how many they were
};

CudaArithmetic cudaArithmetic(Kind kind, DataType type);
// `text` with these expressions, and `x` the type as it lies in memory, in their places.
std::string withArithmetic(char const* text, CudaArithmetic const& arithmetic, DataType type);

} // namespace tw::ops::reduce
