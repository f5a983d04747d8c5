// SPDX-License-Identifier: Apache-2.0
// Where the parts of a tile lie and what is copied to them.
//   int TILE_M, TILE_N, STAGES, VECTOR, SLICES, BLOCKS_PER_SM; bool NCHW, ALIGNED; float activate(float)
#pragma once

#include "kernels/cuda/conv/mma_common.cuh"
#include "kernels/cuda/conv/mma_f32_params.h"

namespace tw::cuda::conv_f32 {

constexpr int THREADS = 256, WARPS = 8 / SLICES; // of a slice
constexpr u32 X_BYTES = TILE_M * 128, STAGE_BYTES = (TILE_M + TILE_N) * 128;
using Args = ArgsOf<float>;
// Rows of 128 bytes; 8 rows at the same k lie in different banks.
TW_INLINE u32 unitAt(int row, int unit)
{
    return row * 128 + (unit ^ (row & 7)) * 16;
}
// Where k stands.
struct Taps
{
    int inner, middle, outer;
    TW_INLINE Taps(Args const& a, int k)
    {
        int const q = k / a.inner;
        inner = k - q * a.inner;
        outer = q / a.middle;
        middle = q - outer * a.middle;
    }
    TW_INLINE void move(Args const& a, int by)
    {
        inner += by;
        while (inner >= a.inner) {
            inner -= a.inner;
            if (++middle == a.middle) {
                middle = 0;
                ++outer;
            }
        }
    }
    TW_INLINE void next(Args const& a)
    {
        if (++inner < a.inner)
            return;
        inner = 0;
        if (++middle == a.middle) {
            middle = 0;
            ++outer;
        }
    }
};
// A pixel's first tap, which may lie outside.
struct Pixel
{
    i64 at;
    int h, w;
};
TW_INLINE Pixel pixelAt(Args const& a, int m)
{
    int const row = divide(m, a.outW), image = divide(row, a.outH);
    Pixel p;
    p.h = (row - image * int(a.outH.d)) * a.strideH - a.padH;
    p.w = (m - row * int(a.outW.d)) * a.strideW - a.padW;
    p.at = i64(image) * a.imageX + i64(p.h) * a.rowX + i64(p.w) * a.columnX;
    if (m >= a.m)
        p.h = -(1 << 28); // zeros
    return p;
}
// How far a tap is from the first one.
struct Step
{
    i64 at;
    int h, w;
    bool known;
    TW_INLINE Step(Args const& a, Taps const& t)
    {
        h = (NCHW ? t.middle : t.outer) * a.dilationH;
        w = (NCHW ? t.inner : t.middle) * a.dilationW;
        at = i64(h) * a.rowX + i64(w) * a.columnX + (NCHW ? i64(t.outer) * a.channelX : t.inner);
        known = t.outer < a.outer;
    }
    TW_INLINE bool isInside(Args const& a, Pixel const& p) const
    {
        return u32(p.h + h) < u32(a.h) && u32(p.w + w) < u32(a.w) && known;
    }
};

} // namespace tw::cuda::conv_f32
