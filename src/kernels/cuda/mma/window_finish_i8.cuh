// SPDX-License-Identifier: Apache-2.0
// Sums of i8 in convolutions over up to three axes to their end: four columns of a row. After window_sums_i8.cuh.
#pragma once

#include "kernels/cuda/mma/windows.cuh"

namespace tw::cuda::product {

// What a thread does with four columns of each of its rows of y, or as many as there are (`left`), from `filter` on. Of
// filters that only fill y's pixels up, scale and bias are those of the last one.
struct Finish
{
    float scale[4], bias[4];
    EndNumbers numbers;
    TW_INLINE Finish(Args const& a, int filter, int left) : numbers(endNumbers(a.end))
    {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            int const k = min(filter + (e < left ? e : 0), a.filtersY - 1);
            scale[e] = endScale(a.end, k);
            bias[e] = endBias(a.end, k);
        }
    }
    // `from`: the sums; `split` blocks have a part of each.
    TW_INLINE void put(Args const& a, u32 from, int split, i64 pixelY, int filter, int left) const
    {
        i32 sum[4] = {};
        for (int r = 0; r < split; ++r) {
            float4 const part = split > 1 ? loadFourOf(addressIn(from, r)) : loadFour(from);
            sum[0] += __float_as_int(part.x);
            sum[1] += __float_as_int(part.y);
            sum[2] += __float_as_int(part.z);
            sum[3] += __float_as_int(part.w);
        }
        float v[4];
        endFour(v, sum, scale, bias, numbers,
                static_cast<EndResidual const*>(a.end.residual) + pixelY * a.pixelResidual + filter, left);
        putFour(reinterpret_cast<EndElement*>(a.y) + pixelY * a.pixelY + filter, v, a.end.table, left);
    }
};

} // namespace tw::cuda::product
