// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "kernels/cuda/common/prelude.h"
#include "kernels/cuda/common/source.h"
#include "ops/reduce/op.h"

namespace tw::ops::reduce {

// What reduce_arithmetic.cuh wants.
inline std::string arithmeticOf(Kind kind, DataType type)
{
    return cuda::type("T", cuda::storageOf(type)) + cuda::constant("KIND", int64_t(kind));
}

// What numbers of a type are joined in.
inline int64_t accumulatorBytes(DataType type)
{
    return isFloating(type) ? 4 : 8;
}

} // namespace tw::ops::reduce
