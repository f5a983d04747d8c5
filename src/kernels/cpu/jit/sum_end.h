// SPDX-License-Identifier: Apache-2.0
// What kernels of sums do with them, once the bias is added, before they store them.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/step_code.h"
#include "kernels/cpu/jit/activation.h"
#include "kernels/cpu/jit/emitter.h"

namespace tw::kernels::jit {

struct SumEnd
{
    std::optional<Activation> activation; // of the sum and the residual
    bool residualLast = false;            // of the sum, to which the residual is added afterwards
    // Or an expression of the sum, value 0, and of the residual, value 1 where there is one.
    std::vector<ExpressionStep> steps;

    bool any() const { return activation || !steps.empty(); }
};

// Such an expression of what was stored a moment ago, and of the residual: y[i, j] = steps(y[i, j], residual[i, j]).
class StepsKernel
{
public:
    StepsKernel() = default;
    static Result<StepsKernel> emit(Isa isa, std::span<ExpressionStep const> steps, bool residual);
    explicit operator bool() const { return code_.sizeBytes() != 0; }
    void operator()(float* y, int64_t yRowBytes, float const* residual, int64_t residualRowBytes, int64_t rows,
                    int64_t columns) const;

private:
    Code code_;
};

} // namespace tw::kernels::jit
