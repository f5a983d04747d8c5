// SPDX-License-Identifier: Apache-2.0
// What emitted kernels of sums end with, of one node (families/elementwise/epilogue.h).
#pragma once

#include <optional>

#include "families/elementwise/epilogue.h"
#include "kernels/cpu/jit/gemm_kernel.h"
#include "kernels/cpu/jit/sum_end.h"
#include "tactic/tactic.h"

namespace tw::ops {

class JitEnd
{
public:
    // `factors`: how many products each sum has at most.
    JitEnd(Problem const& problem, Epilogue const& epilogue, double factors, kernels::jit::Isa isa);
    // Bias and all that follows.
    void add(kernels::jit::GemmKernelSpec& spec) const;
    // Of a tile of channels from `first` on: scale, bias and numbers; c and residual at the first pixel.
    void set(kernels::jit::GemmArgs& tile, RunArgs const& args, int64_t first) const;
    kernels::jit::IntegerEnd const& ofIntegers() const { return integers_; }
    bool hasResidual() const { return integers_.residual.has_value(); }
    int64_t yBytes() const { return sizeOf(integers_.store); } // of an element
    int64_t residualBytes() const { return hasResidual() ? sizeOf(*integers_.residual) : 0; }

private:
    bool sumsIntegers_;
    kernels::jit::IntegerEnd integers_; // of floats: bias, residual, and what is stored
    kernels::jit::SumEnd floats_;
};

// Whether the numbers that it rounds to i8 are no NaN and lie within 2^30, whatever the factors are: said by constant
// scales and bias. `k`: how many factors each sum has at most.
bool staysBounded(Problem const& problem, Epilogue const& epilogue, double k);

// The end of a fused op, as emitted kernels know it.

// Nothing where there is no activation.
std::optional<kernels::jit::Activation> jitActivation(FusedActivation const& f);
// What stands behind sums of floats and their bias.
kernels::jit::SumEnd jitEnd(Epilogue const& epilogue);

// Whether a rounding error of what it is applied to may be as large a step of its result: for tactics that round.
bool jumps(kernels::jit::SumEnd const& end);
inline constexpr char kJumps[] = "rounds factors, and what follows the sums jumps";

} // namespace tw::ops
