// SPDX-License-Identifier: Apache-2.0
// The nodes that an append_attention stands for, as problems of their own.
#pragma once

#include <memory>

#include "ops/append_attention/op.h"
#include "tactic/cuda_tactic.h"

namespace tw::ops::append_attention {

class Parts
{
public:
    // The problem's node outlives this.
    static std::unique_ptr<Parts const> of(Problem const& problem);
    Problem const& operator[](Part part) const { return problems_[size_t(part)]; }

private:
    ir::Node& set(Part part, Problem const& whole, std::vector<TensorSpec> inputs, TensorSpec output);

    std::array<ir::Node, kParts> nodes_;
    std::array<Problem, kParts> problems_;
    ir::Value rows_; // turned ones, as attention reads them
};

// The kernels of all parts, one behind the other; attention's are those of a tactic of that op and its config.
std::unique_ptr<CudaKernels> kernelsApart(Problem const& problem, CudaTactic const& attention, Config const& config);

// Rows go into the caches and are read again by the same kernel.
extern CudaTactic const kF16Few;

} // namespace tw::ops::append_attention
