// SPDX-License-Identifier: Apache-2.0
// Products in vector units, or by mma.sync where MMA: of FP16, or TF32.
//   bool MMA, TF32
#pragma once

#include "kernels/cuda/common/fragments.cuh"
#include "kernels/cuda/rates/numbers.cuh"

namespace tw::cuda {

// d [16, 8] += a [16, 8] b [8, 8]
TW_INLINE void mmaTf32(float (&d)[4], u32 const (&a)[4], u32 b0, u32 b1)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

} // namespace tw::cuda

// Sums that do not wait for each other hide a product's latency.
TW_KERNEL rateOfProducts(float* y, int repeats)
{
    int const at = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    if constexpr (MMA) {
        u32 a[4];
        for (int i = 0; i < 4; ++i)
            a[i] = numbersAt(at + i);
        u32 const b0 = numbersAt(at + 4), b1 = numbersAt(at + 5);
        float d[8][4] = {};
        for (int r = 0; r < repeats; ++r)
#pragma unroll
            for (int i = 0; i < 8; ++i)
                if constexpr (TF32)
                    mmaTf32(d[i], a, b0, b1);
                else
                    mma(d[i], a, b0, b1);
        for (int i = 0; i < 8; ++i)
            sum += d[i][0] + d[i][1] + d[i][2] + d[i][3];
    } else {
        float const a = 0.5f + 1e-3f * float(at & 255), b = 0.25f;
        float d[16];
        for (int i = 0; i < 16; ++i)
            d[i] = float(i);
        for (int r = 0; r < repeats; ++r)
#pragma unroll
            for (int i = 0; i < 16; ++i)
                d[i] = fmaf(d[i], a, b);
        for (int i = 0; i < 16; ++i)
            sum += d[i];
    }
    y[at] = sum;
}
