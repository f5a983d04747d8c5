// SPDX-License-Identifier: Apache-2.0
// Sums of FP16 and FP32 in convolutions over up to three axes to y: four columns of a row. After window_sums_mma.cuh.
//   bool IS_HALF, ALIGNED; float epilogue(float v, float r)
#pragma once

#include "kernels/cuda/mma/windows.cuh"

namespace tw::cuda::product {

// Four columns of y, or as many as there are.
TW_INLINE float valueOf(Narrow v)
{
    return halfToFloat(v);
}
TW_INLINE float valueOf(float v)
{
    return v;
}
TW_INLINE void takeFour(float (&v)[4], Element const* from, int left)
{
    if constexpr (ALIGNED && IS_HALF) {
        uint2 const u = *reinterpret_cast<uint2 const*>(from);
        v[0] = lowHalf(u.x);
        v[1] = highHalf(u.x);
        v[2] = lowHalf(u.y);
        v[3] = highHalf(u.y);
    } else {
#pragma unroll
        for (int e = 0; e < 4; ++e)
            if (ALIGNED || e < left)
                v[e] = valueOf(from[e]);
    }
}
TW_INLINE void putFour(Element* to, float const (&v)[4], int left)
{
    if constexpr (IS_HALF) {
        uint2 const u{packHalves(v[0], v[1]), packHalves(v[2], v[3])};
        if constexpr (ALIGNED) {
            *reinterpret_cast<uint2*>(to) = u;
        } else {
            u32 const both[2] = {u.x, u.y};
#pragma unroll
            for (int e = 0; e < 4; ++e)
                if (e < left)
                    reinterpret_cast<u16*>(to)[e] = u16(both[e / 2] >> e % 2 * 16);
        }
    } else if constexpr (ALIGNED) {
        *reinterpret_cast<float4*>(to) = make_float4(v[0], v[1], v[2], v[3]);
    } else {
#pragma unroll
        for (int e = 0; e < 4; ++e)
            if (e < left)
                reinterpret_cast<float*>(to)[e] = v[e];
    }
}
// What a thread does with four columns of each of its rows of y, or as many as there are (`left`), from `filter` on.
struct Finish
{
    float bias[4] = {};
    TW_INLINE Finish(Args const& a, int filter, int left)
    {
#pragma unroll
        for (int e = 0; e < 4; ++e)
            if (a.bias && e < left)
                bias[e] = a.bias[filter + e];
    }
    // `from`: the sums; `split` blocks have a part of each.
    TW_INLINE void put(Args const& a, u32 from, int split, i64 pixelY, int filter, int left) const
    {
        float v[4] = {bias[0], bias[1], bias[2], bias[3]};
        for (int r = 0; r < split; ++r) {
            float4 const part = split > 1 ? loadFourOf(addressIn(from, r)) : loadFour(from);
            v[0] += part.x;
            v[1] += part.y;
            v[2] += part.z;
            v[3] += part.w;
        }
        float residual[4] = {};
        if (a.residual)
            takeFour(residual, a.residual + pixelY * a.pixelResidual + filter, left);
#pragma unroll
        for (int e = 0; e < 4; ++e)
            v[e] = epilogue(v[e], residual[e]);
        putFour(a.y + pixelY * a.pixelY + filter, v, left);
    }
};

} // namespace tw::cuda::product
