// SPDX-License-Identifier: Apache-2.0
// What plain kernels do with sums of i8 (families/elementwise/epilogue.h): FP32, each step rounded by itself.
#pragma once

#include "base/tensor.h"
#include "families/elementwise/epilogue.h"

namespace tw::ops {

class IntegerEnd
{
public:
    // `inputs`: those of the node.
    IntegerEnd(Epilogue const& epilogue, std::span<TensorRef const> inputs, TensorRef const& y);
    // Stores elements [at, at + n) of y from their sums; the first is of channel k, the next of k + kStep (0 or 1).
    void store(int32_t const* sums, int64_t n, int64_t at, int64_t k, int64_t kStep) const;

private:
    FusedActivation const& activation_;
    TensorRef residual_, y_;
    float const *scale_, *bias_, *residualScale_, *outputScale_, *innerScale_; // null: not there
    int8_t const* table_;                                                      // of -128 first; null: there is none
    bool isOneScale_;
};

} // namespace tw::ops
