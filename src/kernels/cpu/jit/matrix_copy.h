// SPDX-License-Identifier: Apache-2.0
// Copies of parts of matrices into the form that the matrix micro-kernel reads: rows times a factor, and transposed
// square blocks.
#pragma once

#include <cstdint>

#include "kernels/cpu/jit/emitter.h"

namespace tw::kernels::jit {

// y[i, j] = factor * x[i, j], j < n; after the row's end zeros up to the next whole vector.
struct CopyRowsArgs
{
    float const* x = nullptr;
    float* y = nullptr;
    int64_t xStrideBytes = 0, yStrideBytes = 0;
    int64_t rows = 0, n = 0;
    float factor = 1;
};

class CopyRowsKernel
{
public:
    static Result<CopyRowsKernel> emit(Isa isa);
    void operator()(CopyRowsArgs const& args) const
    {
        if (args.rows > 0 && args.n > 0)
            code_.entry<void (*)(CopyRowsArgs const*)>()(&args);
    }

private:
    Code code_;
};

// y[j, i] = x[i, j] for blocks of vectorWidth(isa) rows and columns.
class TransposeKernel
{
public:
    static Result<TransposeKernel> emit(Isa isa);
    void operator()(float const* x, int64_t xStrideBytes, float* y, int64_t yStrideBytes) const
    {
        code_.entry<void (*)(float const*, int64_t, float*, int64_t)>()(x, xStrideBytes, y, yStrideBytes);
    }

private:
    Code code_;
};

} // namespace tw::kernels::jit
