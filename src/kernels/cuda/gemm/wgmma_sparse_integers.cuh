// SPDX-License-Identifier: Apache-2.0
// What leaves a tile of sparse products of i8, as i8, through the end that they have. After integerEndSource().
#pragma once

#include "kernels/cuda/common/integer_end.cuh"
#include "kernels/cuda/gemm/wgmma_sparse_tiles.cuh"

namespace tw::cuda::gemm_sparse {

// Scales and biases of a lane's two filters, neighbours (packSparse()).
template <bool INTEGER_SUMS>
struct FilterEnds
{
    float scale[2] = {}, bias[2] = {};
    TW_INLINE void take(Args const& a, int filter0, int lane)
    {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            int const n = filter0 + lane / 4 * 2 + h;
            if (n < a.channels) { // what n has more of is nobody's
                scale[h] = endScale(a.end, n);
                bias[h] = endBias(a.end, n);
            }
        }
    }
};

TW_INLINE i8 byteOf(u32 v, int i)
{
    return i8(v >> (i * 8));
}

// y of 16 filters of a warp, a unit of a row, and all pixels of its group, in place of the residual.
TW_INLINE void leave(Args const& a, i32 (&v)[COLUMNS / 2], u32 part, FilterEnds<true> const& ends, int unit, int lane)
{
    static_assert(COLUMNS % 32 == 0, "fours of 8 pixels");
    EndNumbers const numbers = endNumbers(a.end);
    // Four blocks of 8 pairs of filters and 8 pixels at once; each lane names a pixel of one.
    u32 const lineAt = part + lane * 128 + (unit ^ lane % 8) * 16;
#pragma unroll
    for (int j = 0; j + 3 < COLUMNS / 8; j += 4) {
        u32 const at = lineAt + j * 1024;
        u32 add[4] = {}, out[4];
        if constexpr (RESIDUAL)
            loadMatrix4Transposed(add, at);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            int const from = (j + i) * 4;
            float t[2][2]; // [pixel][filter]
#pragma unroll
            for (int e = 0; e < 2; ++e)
#pragma unroll
                for (int h = 0; h < 2; ++h)
                    t[e][h] =
                        endOf(v[from + h * 2 + e], ends.scale[h], ends.bias[h], byteOf(add[i], e * 2 + h), numbers);
            out[i] = toBytes(t[0][0], t[0][1]) | toBytes(t[1][0], t[1][1]) << 16;
        }
        storeMatrix4Transposed(at, out);
    }
}

} // namespace tw::cuda::gemm_sparse
