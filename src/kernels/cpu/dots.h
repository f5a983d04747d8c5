// SPDX-License-Identifier: Apache-2.0
// Products of few rows with a matrix that lies transposed: c[i][j] = sum over k of a[i][k] * b[j][k], rows of a and of
// b contiguous. One function for each instruction set.
#pragma once

#include <cstdint>

namespace tw::kernels {

struct Dots
{
    static constexpr int64_t kMaxRows = 4;

    float const* a = nullptr;
    int64_t lda = 0, rows = 0; // up to kMaxRows
    float const* b = nullptr;
    int64_t ldb = 0, columns = 0, k = 0;
    float* c = nullptr;
    int64_t ldc = 0;
};

} // namespace tw::kernels

namespace tw::avx2 {
void dots(kernels::Dots const& d);
}
namespace tw::avx512 {
void dots(kernels::Dots const& d);
}
