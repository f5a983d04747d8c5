// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/common/epilogue_params.h"
#include "kernels/cuda/common/params.h"
#include "kernels/cuda/common/types.h"

namespace tw::cuda::gemm_mma {

// The text has the same structs.
template <class Element>
struct ArgsOf : OutputOf<Element>
{
    Element const *a = nullptr, *b = nullptr;
    float* sums = nullptr;                        // Launch::sumsBytes
    i64 lda = 0, ldb = 0, batchA = 0, batchB = 0; // elements
    i32 k = 0, tilesM = 0, tilesN = 0;
};
struct IntegerArgs
{
    i8 const *a = nullptr, *b = nullptr;
    void* y = nullptr; // [batches, m, n], as the residual
    IntegerEndArgs end;
    i64 lda = 0, ldb = 0;   // between stored rows
    i64 endA = 0, endB = 0; // bytes of all of an operand
    i32 m = 0, n = 0, k = 0, tilesM = 0, tilesN = 0, batches = 1;
    Loop<2> batch; // a, b
};

} // namespace tw::cuda::gemm_mma

namespace tw::cuda::gemm_f32 {

// The text has the same struct.
struct Params
{
    float const *a = nullptr, *b = nullptr, *bias = nullptr, *residual = nullptr;
    float* y = nullptr;
    i64 m = 0, n = 0, k = 0;
    i64 lda = 0, ldb = 0; // between stored rows
    Div tilesM, tilesN;
    Loop<2> batch; // a, b
};

} // namespace tw::cuda::gemm_f32

namespace tw::cuda::gemv_i8 {

struct Args
{
    i8 const *a = nullptr, *b = nullptr; // [m, k]; [n, ldb], ldb whole 16 bytes, zeros behind k
    void* y = nullptr;                   // [m, n]
    IntegerEndArgs end;
    i64 lda = 0, ldb = 0;
    i32 m = 0, n = 0, k = 0, units = 0; // of 16 bytes in k, rounded up
};

} // namespace tw::cuda::gemv_i8

namespace tw::cuda::gemv_f16 {

// The text has the same struct.
template <class Element>
struct ArgsOf : OutputOf<Element>
{
    Element const *a = nullptr, *b = nullptr; // [m, k]; [n, k]
    float const* sums = nullptr;              // of b's columns, where a's rows are normalized by LayerNorm first
    i64 lda = 0, ldb = 0;                     // elements, whole 16 bytes
    i32 k = 0;
    float epsilon = 0;
};

} // namespace tw::cuda::gemv_f16
