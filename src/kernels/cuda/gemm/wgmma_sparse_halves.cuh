// SPDX-License-Identifier: Apache-2.0
// What leaves a tile of sparse products of FP16.
#pragma once

#include "kernels/cuda/gemm/wgmma_sparse_tiles.cuh"

namespace tw::cuda::gemm_sparse {

// What ends the sums of a warp's 16 filters, of 64: biases, or scales and biases.
template <bool INTEGER_SUMS>
struct FilterEnds
{
    float v[2] = {}; // of filters g and g + 8 of 16
    TW_INLINE void take(Args const& a, int filter0, int lane)
    {
        if constexpr (BIAS)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                int const n = filter0 + lane / 4 + h * 8;
                v[h] = n < a.n ? a.bias[n] : 0;
            }
    }
};

// y of 16 filters of a warp and all pixels of its group, in place of the residual. `unit0`: the first of the two units
// of 8 filters that the warp has in a row.
TW_INLINE void leave(Args const&, float (&v)[COLUMNS / 2], u32 part, FilterEnds<false> const& ends, int unit0, int lane)
{
    // Four 8 x 8 blocks at once: filters 0 and 8 of 8 pixels, then of the next 8; each lane names a pixel of one.
    int const inBlock = lane % 8, pixel0 = lane / 16 * 8 + inBlock;
    u32 const lineAt = part + pixel0 * 128 + ((unit0 + lane / 8 % 2) ^ inBlock) * 16;
#pragma unroll
    for (int j = 0; j + 1 < COLUMNS / 8; j += 2) {
        u32 const at = lineAt + j * 1024;
        u32 add[4], out[4];
        if constexpr (RESIDUAL)
            loadMatrix4Transposed(add, at);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            int const h = i % 2, from = (j + i / 2) * 4 + h * 2;
            float x0 = v[from] + ends.v[h], x1 = v[from + 1] + ends.v[h];
            float r0 = 0, r1 = 0;
            if constexpr (RESIDUAL) {
                r0 = lowHalf(add[i]);
                r1 = highHalf(add[i]);
            }
            x0 = epilogue(x0, r0);
            x1 = epilogue(x1, r1);
            out[i] = packHalves(x0, x1);
        }
        storeMatrix4Transposed(at, out);
    }
}

} // namespace tw::cuda::gemm_sparse
