// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "kernels/cuda/common/prelude.h"
#include "kernels/cuda/common/source.h"
#include "ops/reduce/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::reduce {

// What reduce_arithmetic.cuh wants.
inline std::string arithmeticOf(Attrs const& a, DataType type)
{
    std::string const kind = cuda::constant("KIND", int64_t(a.kind)), number = cuda::storageOf(type);
    if (a.isBare())
        return cuda::type("T", number) + kind;
    std::string const element = a.isLogSumExp()
                                    ? "Exponent<" + number + ">"
                                    : fmt::format("Element<{}, {}, {}>", number, int(a.before), int(a.after));
    return cuda::include(a.isLogSumExp() ? "ops/reduce/reduce_log_sum_exp.cuh" : "ops/reduce/reduce_element.cuh") +
           cuda::type("T", "tw::ops::reduce::" + element) + kind;
}

// What numbers of a type are joined in.
inline int64_t accumulatorBytes(Attrs const& a, DataType type)
{
    return isFloating(type) && !a.isLogSumExp() ? 4 : 8;
}

// CUDA tactics that stand in files of their own.
extern CudaTactic const kNhwc, kNhwcF32, kColumns;

} // namespace tw::ops::reduce
