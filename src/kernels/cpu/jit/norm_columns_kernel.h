// SPDX-License-Identifier: Apache-2.0
// Statistics of the columns of a matrix, and the columns scaled and shifted: what norms are made of whose numbers do not
// lie in one row.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/cpu/jit/emitter.h"
#include "kernels/cpu/jit/sum_end.h"

namespace tw::kernels::jit {

// mean[c] and squares[c], the sum of (x[r, c] - mean[c])^2 over the rows. A kernel emitted for `rms` takes the mean for 0
// and leaves mean[] alone.
struct ColumnMomentsArgs
{
    float const* x = nullptr;
    float *mean = nullptr, *squares = nullptr;
    int64_t rows = 0, columns = 0; // rows >= 1
    int64_t stride = 0;            // bytes from row to row
    float inverseRows = 0;
};

struct ColumnMomentsKernel : Emitted<ColumnMomentsArgs>
{
    static Result<ColumnMomentsKernel> emit(Isa isa, bool rms);
};

// y[r, c] = f(((x[r, c] - mean[c]) * scale[c] + shift[c]) * gamma[r] + beta[r]); gamma, beta and f only where the kernel was emitted
// with them.
struct ColumnApplyArgs
{
    float const* x = nullptr;
    float* y = nullptr; // may be x
    float const *mean = nullptr, *scale = nullptr, *shift = nullptr, *gamma = nullptr, *beta = nullptr;
    int64_t rows = 0, columns = 0;    // rows >= 1
    int64_t xStride = 0, yStride = 0; // bytes from row to row
};

struct ColumnApplyForm
{
    bool gamma = false, beta = false;
    std::optional<Activation> activation;
};

struct ColumnApplyKernel : Emitted<ColumnApplyArgs>
{
    static Result<ColumnApplyKernel> emit(Isa isa, ColumnApplyForm const& form);
};

} // namespace tw::kernels::jit
