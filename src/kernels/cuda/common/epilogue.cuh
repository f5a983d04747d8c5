// SPDX-License-Identifier: Apache-2.0
// What products do with their sums: bias, activation, residual.
// After epilogueConstants():
//   type Element; float epilogue(float v, float r), of the sum with its bias and the residual or 0;
//   int CHUNK; bool BIAS, RESIDUAL, ALIGNED
#pragma once

#include "kernels/cuda/common/epilogue_params.h"
#include "kernels/cuda/common/matrix.cuh"

namespace tw::cuda {

using Output = OutputOf<Element>;
constexpr int UNITS = CHUNK / 8; // 16 bytes of FP16
TW_INLINE constexpr int divisorUpTo(int most, int of)
{
    return of % most == 0 ? most : divisorUpTo(most - 1, of);
}

// Where a row of y begins, in elements, and whether there is one.
struct RowAt
{
    i64 at;
    bool has;
};
TW_INLINE RowAt rowAt(Output const& a, int batch, int row)
{
    return {i64(batch) * a.batchY + i64(row) * a.ldy, row < a.m};
}

// COUNT biases from column0 on, thread t of THREADS its part, to shared memory: taken before the products, put after
// them.
template <int COUNT, int OF>
struct BiasPart
{
    static constexpr int EACH = (COUNT + OF - 1) / OF;
    float v[EACH];
    TW_INLINE void take(Output const& a, int column0, int t)
    {
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            int const c = t + i * OF;
            v[i] = BIAS && c < COUNT && column0 + c < a.n ? a.bias[column0 + c] : 0;
        }
    }
    TW_INLINE void put(u32 to, int t) const
    {
#pragma unroll
        for (int i = 0; i < EACH; ++i)
            if (t + i * OF < COUNT)
                storeShared(to + (t + i * OF) * 4, __float_as_uint(v[i]));
    }
};

} // namespace tw::cuda
