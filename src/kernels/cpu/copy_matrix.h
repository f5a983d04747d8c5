// SPDX-License-Identifier: Apache-2.0
// Copies a matrix of any strides to rows one after the other: how operands are packed.
#pragma once

#include <cstdint>

namespace tw::kernels {

// to[i * ld + j] = from[i * rowStride + j * columnStride] for i < rows, j < columns; zero for columns <= j < width.
void copyMatrix(float* to, int64_t ld, int64_t width, float const* from, int64_t rows, int64_t columns,
                int64_t rowStride, int64_t columnStride);
// to[rowOf[i] * ld + j] = from[i + j * columnStride] for i < rows, j < columns.
void copyTransposed(float* to, int64_t ld, int64_t const* rowOf, float const* from, int64_t rows, int64_t columns,
                    int64_t columnStride);

} // namespace tw::kernels
