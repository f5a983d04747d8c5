// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/jit/sum_end.h"

#include "kernels/cpu/jit/pointwise.h"

namespace tw::kernels::jit {

Result<StepsKernel> StepsKernel::emit(Isa isa, std::span<ExpressionStep const> steps, bool residual)
{
    StepsKernel kernel;
    if (steps.empty())
        return kernel;
    int const inputs = residual ? 2 : 1;
    PointwiseProgram const program{inputs, {steps.begin(), steps.end()}};
    if (std::string const why = checkProgram(program); !why.empty())
        return internalError("a kernel was asked for whose end does not fit: " + why);
    TW_ASSIGN(kernel.code_, emitPointwise(isa, program, std::vector<bool>(size_t(inputs), false), false));
    return kernel;
}

void StepsKernel::operator()(float* y, int64_t yRowBytes, float const* residual, int64_t residualRowBytes, int64_t rows,
                             int64_t columns) const
{
    PointwiseArgs args{{y, residual}, {yRowBytes, residualRowBytes}, y, yRowBytes, rows, columns};
    code_.entry<PointwiseFunction>()(&args);
}

} // namespace tw::kernels::jit
