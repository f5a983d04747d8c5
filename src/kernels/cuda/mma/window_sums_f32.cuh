// SPDX-License-Identifier: Apache-2.0
// Sums of products of FP32 in convolutions, exact. After places_2d.cuh.
//   int SLICES   groups of warps that share each step's k
#pragma once

#include "kernels/cuda/mma/windows.cuh"

namespace tw::cuda::product {

// Each warp of a slice has 64 rows and 32 columns: a lane every 8th and every 4th of them. Lanes 2 i and 2 i + 1 read the
// same rows, lanes i and i ^ 2 the same columns: else loads of 16 bytes take twice as long.
constexpr int WARPS = 8 / SLICES, WARPS_M = TILE_M / 64, PITCH = TILE_N + 4;
struct Sums
{
    static constexpr bool AHEAD = true, FETCHES_FIRST = true, ADDRESSES = false;
    static constexpr int PARTS = 8 / SLICES, AT_ONCE = 1; // of four places of k each; short code
    using Values = float[8][8];
    struct Factors // of this lane's rows and columns
    {
        float4 x[8], f[8];
    };
    u8 const* tiles;
    int const warp = threadIdx.x / 32, lane = threadIdx.x % 32, slice = warp / WARPS;
    // Of this lane: in the tile.
    int const row = warp % WARPS % WARPS_M * 64 + lane / 2 % 8;
    int const column = warp % WARPS / WARPS_M * 32 + lane % 2 + lane / 16 * 2;
    TW_INLINE explicit Sums(u8* shared) : tiles(shared) {}
    TW_INLINE void take(Factors& part, u32 stage, int unit) const
    {
        float4 const* const x = reinterpret_cast<float4 const*>(tiles + stage + row * 128);
        float4 const* const f = reinterpret_cast<float4 const*>(tiles + stage + Windows::A_BYTES + column * 128);
        int const k = slice * PARTS + unit, turn = row & 7, even = column & 7;
#pragma unroll
        for (int i = 0; i < 8; ++i)
            part.x[i] = x[i * 64 + (k ^ turn)];
#pragma unroll
        for (int j = 0; j < 8; ++j)
            part.f[j] = f[j * 32 + (k ^ even ^ (j % 2 ? 4 : 0))];
    }
    TW_INLINE void add(Values& d, Factors const& part) const
    {
        addOne(d, part, [](float4 const& v) { return v.x; });
        addOne(d, part, [](float4 const& v) { return v.y; });
        addOne(d, part, [](float4 const& v) { return v.z; });
        addOne(d, part, [](float4 const& v) { return v.w; });
    }
    template <class Of>
    static TW_INLINE void addOne(Values& d, Factors const& part, Of const& of)
    {
#pragma unroll
        for (int j = 0; j < 8; ++j)
#pragma unroll
            for (int i = 0; i < 8; ++i)
                d[i][j] = fmaf(of(part.x[i]), of(part.f[j]), d[i][j]);
    }
    TW_INLINE void put(Values const& d, u32 to) const
    {
#pragma unroll
        for (int i = 0; i < 8; ++i)
#pragma unroll
            for (int j = 0; j < 8; ++j)
                storeShared(to + ((row + i * 8) * PITCH + column + j * 4) * 4, __float_as_uint(d[i][j]));
    }
};

} // namespace tw::cuda::product
