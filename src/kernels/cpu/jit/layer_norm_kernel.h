// SPDX-License-Identifier: Apache-2.0
// y[i] = (x[i] - mean) / sqrt(variance + epsilon) * gamma[i] + beta[i] for rows of n numbers, mean and variance of each
// row; gamma and beta only where the kernel was emitted with them. The row stays in L1 for its three passes: sum,
// squares of the differences, result.
#pragma once

#include <cstdint>

#include "kernels/cpu/jit/emitter.h"

namespace tw::kernels::jit {

struct LayerNormArgs
{
    float const* x = nullptr;
    float* y = nullptr; // may be x
    float const* gamma = nullptr;
    float const* beta = nullptr;
    int64_t rows = 0, n = 0; // n >= 1; rows are contiguous
    float inverseN = 0, epsilon = 0;
};

class LayerNormKernel
{
public:
    static Result<LayerNormKernel> emit(Isa isa, bool gamma, bool beta);
    void operator()(LayerNormArgs const& args) const
    {
        if (args.rows > 0)
            code_.entry<void (*)(LayerNormArgs const*)>()(&args);
    }

private:
    Code code_;
};

} // namespace tw::kernels::jit
