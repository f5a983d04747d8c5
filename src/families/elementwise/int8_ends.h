// SPDX-License-Identifier: Apache-2.0
// What emitted kernels of sums of i8 end with, of one node (families/elementwise/epilogue.h).
#pragma once

#include "families/elementwise/epilogue.h"
#include "kernels/cpu/jit/gemm_kernel.h"
#include "tactic/tactic.h"

namespace tw::ops {

class Int8Ends
{
public:
    // `factors`: how many products each sum has at most.
    Int8Ends(Problem const& problem, Epilogue const& epilogue, double factors, kernels::jit::Isa isa);
    kernels::jit::IntegerEnd const& end() const { return end_; }
    // Of a tile of channels from `first` on: scale, bias and numbers; c and residual at the first pixel.
    void set(kernels::jit::GemmArgs& tile, RunArgs const& args, int64_t first) const;
    bool hasResidual() const { return end_.residual.has_value(); }
    int64_t yBytes() const { return sizeOf(end_.store); }
    int64_t residualBytes() const { return hasResidual() ? sizeOf(*end_.residual) : 0; }

private:
    kernels::jit::IntegerEnd end_;
};

} // namespace tw::ops
