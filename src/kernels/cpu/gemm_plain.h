// SPDX-License-Identifier: Apache-2.0
// Portable matrix product for the plain tactics: c[m,n] = sum over k of a[m,k] * b[k,n], plus bias[n] when given.
#pragma once

#include <cstdint>

#include "base/types.h"

namespace tw::kernels {

struct GemmShape
{
    int64_t m = 0, n = 0, k = 0;
    int64_t aRow = 0, aColumn = 0; // strides in elements: a[i,p] is at i * aRow + p * aColumn
    int64_t bRow = 0, bColumn = 0; // b[p,j] is at p * bRow + j * bColumn
};

// Grows with each of m, n, k.
int64_t gemmPlainWorkspaceBytes(int64_t m, int64_t n, int64_t k);
// All of one floating type; c is dense; sums in float. With k = 0 c is the bias, or zero. The workspace needs no alignment
// beyond float's.
void gemmPlain(DataType type, GemmShape const& s, void const* a, void const* b, void const* bias, void* c,
               void* workspace);

} // namespace tw::kernels
