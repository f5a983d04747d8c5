// SPDX-License-Identifier: Apache-2.0
// What emitted kernels of sums of i8 end with, of one node (families/elementwise/epilogue.h).
#pragma once

#include "families/elementwise/epilogue.h"
#include "kernels/cpu/jit/int8_epilogue.h"
#include "tactic/tactic.h"

namespace tw::ops {

class Int8Ends
{
public:
    // `factors`: how many products each sum has at most.
    Int8Ends(Problem const& problem, Epilogue const& epilogue, double factors, kernels::jit::Isa isa);
    // `masked`: not all columns of the last vector exist.
    kernels::jit::Int8Epilogue epilogue(bool masked) const;
    // Of channels from `first` on; c and residual at the first pixel.
    kernels::jit::Int8Output output(RunArgs const& args, int64_t first) const;
    bool hasResidual() const { return epilogue_.residual.has_value(); }
    int64_t yBytes() const { return kernels::jit::bytesOf(epilogue_.store); }
    int64_t residualBytes() const { return hasResidual() ? kernels::jit::bytesOf(*epilogue_.residual) : 0; }

private:
    kernels::jit::Int8Epilogue epilogue_; // not masked
};

} // namespace tw::ops
