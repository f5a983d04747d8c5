// SPDX-License-Identifier: Apache-2.0
// y[i] = f((x[i] - mean) / sqrt(variance + epsilon) * gamma[i] + beta[i]) for rows of n numbers, mean and variance of each
// row; gamma, beta and f only where the kernel was emitted with them, and with `rms` the mean counts as 0. The row stays
// in L1 for its passes: sum, squares of the differences, result.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/cpu/jit/emitter.h"
#include "kernels/cpu/jit/sum_end.h"

namespace tw::kernels::jit {

struct LayerNormArgs
{
    float const* x = nullptr;
    float* y = nullptr; // may be x
    float const* gamma = nullptr;
    float const* beta = nullptr;
    int64_t rows = 0, n = 0;          // n >= 1
    int64_t xStride = 0, yStride = 0; // bytes from row to row
    float inverseN = 0, epsilon = 0;
};

struct LayerNormForm
{
    bool gamma = false, beta = false, rms = false;
    std::optional<Activation> activation;
};

class LayerNormKernel
{
public:
    static Result<LayerNormKernel> emit(Isa isa, LayerNormForm const& form);
    void operator()(LayerNormArgs const& args) const
    {
        if (args.rows > 0)
            code_.entry<void (*)(LayerNormArgs const*)>()(&args);
    }

private:
    Code code_;
};

} // namespace tw::kernels::jit
