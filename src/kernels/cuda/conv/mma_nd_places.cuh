// SPDX-License-Identifier: Apache-2.0
// Convolutions over up to three axes by mma.sync: what a block has of x, and where its rows and steps of k lie.
//   type Element; int TILE_M, TILE_N, VECTOR
#pragma once

#include "kernels/cuda/conv/mma_common.cuh"
#include "kernels/cuda/conv/mma_nd_params.h"

namespace tw::cuda::conv_nd {

constexpr int THREADS = 256, WARPS_M = TILE_M / 32, WARPS_N = 8 / WARPS_M, WARP_N = TILE_N / WARPS_N;
constexpr int BYTES = int(sizeof(Element)), STEP = BYTES == 1 ? kIntegerStepK : kStepK, ROW_BYTES = STEP * BYTES;
constexpr u32 X_BYTES = TILE_M * ROW_BYTES, STAGE_BYTES = (TILE_M + TILE_N) * ROW_BYTES;
using Sizes = ArgsOf<Element>;
constexpr int PITCH = TILE_N + 8; // of sums: halves of a warp store 8 bytes each without conflicts
// Rows of 64 or 128 bytes (FP32); 8 rows at the same k lie in different banks.
TW_INLINE u32 unitAt(int row, int unit)
{
    return ROW_BYTES == 64 ? row * 64 + (unit ^ (row >> 1 & 3)) * 16 : row * 128 + (unit ^ (row & 7)) * 16;
}
// VECTOR elements, those after the first `bytes` zero; nothing is read when that is 0.
TW_INLINE void copyPart(u32 to, Element const* from, int bytes)
{
    if constexpr (VECTOR * BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
    else if constexpr (VECTOR * BYTES == 8)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
    else if constexpr (VECTOR * BYTES == 4)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
    else if constexpr (VECTOR * BYTES == 2) { // too few bytes for an asynchronous copy
        u16 const v = bytes ? *reinterpret_cast<u16 const*>(from) : u16(0);
        asm volatile("st.shared.b16 [%0], %1;" ::"r"(to), "h"(v) : "memory");
    } else {
        u32 const v = bytes ? *reinterpret_cast<u8 const*>(from) : u8(0);
        asm volatile("st.shared.b8 [%0], %1;" ::"r"(to), "r"(v) : "memory");
    }
}

// The phase of a block, and how many taps it has along each axis.
struct Phase
{
    int d, h, w, tapsD, tapsH, tapsW;
    TW_INLINE Phase(Sizes const& a, int phase)
    {
        int const q = phase / a.axes[2].phases;
        w = phase - q * a.axes[2].phases;
        d = q / a.axes[1].phases;
        h = q - d * a.axes[1].phases;
        tapsD = a.axes[0].count[d];
        tapsH = a.axes[1].count[h];
        tapsW = a.axes[2].count[w];
    }
};
// Where k stands.
struct Taps
{
    int inner, d, h, w;
    TW_INLINE Taps(Sizes const& a, int k)
    {
        int q = k / a.inner;
        inner = k - q * a.inner;
        int const row = q / a.axes[2].taps;
        w = q - row * a.axes[2].taps;
        d = row / a.axes[1].taps;
        h = row - d * a.axes[1].taps;
    }
    TW_INLINE void move(Sizes const& a, int by)
    {
        inner += by;
        while (inner >= a.inner) {
            inner -= a.inner;
            if (++w < a.axes[2].taps)
                continue;
            w = 0;
            if (++h < a.axes[1].taps)
                continue;
            h = 0;
            ++d;
        }
    }
};
// A row as an image and a position along each axis.
struct Position
{
    int image, d, h, w;
    TW_INLINE Position(Sizes const& a, int m)
    {
        int const row = divide(m, a.positions[2]), plane = divide(row, a.positions[1]);
        w = m - row * int(a.positions[2].d);
        h = row - plane * int(a.positions[1].d);
        image = divide(plane, a.positions[0]);
        d = plane - image * int(a.positions[0].d);
    }
};
// A position's first tap, which may lie outside.
struct Pixel
{
    i64 at;
    int d, h, w;
    TW_INLINE void set(Sizes const& a, Phase const& p, int m)
    {
        Position const q(a, m);
        d = q.d * a.axes[0].stride + a.axes[0].begin[p.d];
        h = q.h * a.axes[1].stride + a.axes[1].begin[p.h];
        w = q.w * a.axes[2].stride + a.axes[2].begin[p.w];
        at = i64(q.image) * a.imageX + i64(d) * a.planeX + i64(h) * a.rowX + i64(w) * a.pixelX;
        if (m >= a.m)
            d = -(1 << 28); // zeros
    }
};
// How far a tap is from the first one.
struct Step
{
    i64 at;
    int d, h, w, bytes;
    TW_INLINE Step(Sizes const& a, Phase const& p, Taps const& t)
    {
        d = t.d * a.axes[0].step;
        h = t.h * a.axes[1].step;
        w = t.w * a.axes[2].step;
        at = i64(d) * a.planeX + i64(h) * a.rowX + i64(w) * a.pixelX + t.inner;
        bytes = t.d < p.tapsD && t.h < p.tapsH && t.w < p.tapsW ? min(VECTOR, a.channels - t.inner) * BYTES : 0;
    }
    TW_INLINE int bytesFor(Sizes const& a, Pixel const& p) const
    {
        bool const inside =
            u32(p.d + d) < u32(a.axes[0].in) && u32(p.h + h) < u32(a.axes[1].in) && u32(p.w + w) < u32(a.axes[2].in);
        return inside ? bytes : 0;
    }
};

} // namespace tw::cuda::conv_nd
