// SPDX-License-Identifier: Apache-2.0
// Constant second operands as the kernels of cuda_gemm_f16.h want them.
#pragma once

#include <string>

#include "base/blob.h"

namespace tw::ops::gemm_f16 {

struct PackedMatrices
{
    int64_t rows = 0, columns = 0; // of each matrix as stored, one or more
    int64_t padded = 0;            // elements of a packed row
    int64_t size = 2;              // bytes of an element: i8, FP16, FP32
    bool transposes = false;       // packed rows are stored columns
    // The columns of a gated product, in groups of 8 gates and the 8 columns that they let through.
    enum class Gated
    {
        kNot,
        kRows,    // are packed rows
        kColumns, // are columns of packed rows
    };
    Gated gated = Gated::kNot;
    bool tf32x3 = false; // FP32: high parts in a packed row's first half, low ones in its second
};

// Zeros after each row.
std::string packMatrices(Blob const& matrices, PackedMatrices const& how);

// n floats, biases of a gated product, in that order.
void packGatedBias(std::string& bias);

} // namespace tw::ops::gemm_f16
