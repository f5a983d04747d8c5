// SPDX-License-Identifier: Apache-2.0
// Rows begin at packs on both sides. In shared memory a row is what tile[a] has along b; y is written in packs, and by
// elements at the ends of rows.
// After cuda_move.cuh.
#pragma once

#include "families/copy/copy_params.h"
#include "families/copy/cuda_strided_copy.cuh"

namespace tw::ops {

// Where box i lies in x and y. What is left of i becomes 0 at the outermost dimension, at the latest.
TW_INLINE void locateBox(Loop<2> const& others, idx i, off (&at)[2])
{
    at[0] = at[1] = 0;
    for (int r = 7; i != 0; --r) {
        idx const q = divide(i, others.dim[r]);
        off const c = off(i - q * idx(others.dim[r].d));
        at[0] += c * off(others.stride[0][r]);
        at[1] += c * off(others.stride[1][r]);
        i = q;
    }
}
constexpr int kSize = sizeof(Element), kPack = 16 / kSize, kSide = 4 / kSize;
extern __shared__ Whole shared[];
template <int kBytes>
TW_INLINE void copyAsync(void* to, void const* from)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(u32(__cvta_generic_to_shared(to))), "l"(from),
                 "n"(kBytes)
                 : "memory");
#else
    for (int i = 0; i < kBytes / 4; ++i)
        static_cast<u32*>(to)[i] = static_cast<u32 const*>(from)[i];
#endif
}
TW_INLINE void copiesDone()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
    __syncthreads();
}
TW_INLINE Element elementOf(u32 v)
{
    Element e;
    e.v = decltype(e.v)(v);
    return e;
}
TW_INLINE Whole packAt(TileBox const& p, i64 e)
{
    Element const* const x = static_cast<Element const*>(p.x) + e;
    if (e >= p.xBegin && e + kPack <= p.xEnd)
        return *reinterpret_cast<Whole const*>(x);
    Whole v = {};
#pragma unroll
    for (int i = 0; i < kPack; ++i)
        if (e + i >= p.xBegin && e + i < p.xEnd)
            v.v[i / kSide] |= u32(x[i].v) << i % kSide * kSize * 8;
    return v;
}
TW_INLINE void readTile(TileParams const& p, i64 xRow, int na, i64 present, int nb)
{
    int const packs = int(p.xPacks.d), total = na * packs;
    for (int begin = threadIdx.x; begin < total; begin += 4 * 256) {
        Whole v[4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            int const w = begin + k * 256, row = int(divide(w, p.xPacks)), at = (w - row * packs) * kPack;
            i64 const e = xRow + row * p.box.aStep + at;
            v[k] = Whole{};
            if (w >= total || at >= nb || row >= present)
                continue;
            v[k] = packAt(p.box, e);
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            int const w = begin + k * 256, row = int(divide(w, p.xPacks));
            if (w < total)
                shared[(row * p.pitch + row / kPack * p.skew) / kPack + (w - row * packs)] = v[k];
        }
    }
    __syncthreads();
}
// Words of rows a .. a + kPack, each with elements b .. b + kSide, turned: what belongs to row b + side of y.
TW_INLINE Whole turned(u32 const (&w)[kPack], int side)
{
    Whole v;
#pragma unroll
    for (int i = 0; i < 4; ++i)
        if constexpr (kSize == 4) {
            v.v[i] = w[i];
        } else if constexpr (kSize == 2) {
            v.v[i] = __byte_perm(w[2 * i], w[2 * i + 1], side ? 0x7632 : 0x5410);
        } else {
            u32 const low = __byte_perm(w[4 * i], w[4 * i + 1], 0x0040 + 0x11 * side),
                      high = __byte_perm(w[4 * i + 2], w[4 * i + 3], 0x0040 + 0x11 * side);
            v.v[i] = __byte_perm(low, high, 0x5410);
        }
    return v;
}
TW_INLINE void copyTiles(TileParams const& p)
{
    TileBox const& t = p.box;
    idx const rest = divide(blockIdx.x, p.tilesB), other = divide(rest, p.tilesA);
    i64 const b0 = i64(blockIdx.x - rest * idx(p.tilesB.d)) * p.tileB,
              a0 = i64(rest - other * idx(p.tilesA.d)) * p.tileA;
    off at[2];
    locateBox(t.others, other, at);
    int const na = int(t.a - a0 < p.tileA ? t.a - a0 : p.tileA), nb = int(t.b - b0 < p.tileB ? t.b - b0 : p.tileB);
    i64 const xRow = t.xAt + at[0] + a0 * t.aStep + b0, yRow = t.yAt + at[1] + b0 * t.bStep + a0;
    waitForPrevious();
    releaseDependents();
    readTile(p, xRow, na, t.present - a0, nb);
    Element* const y = static_cast<Element*>(t.y) + yRow;
    int const packs = int(p.yPacks.d), words = (nb + 8 * kSide - 1) / (8 * kSide) * 8 * packs;
    for (int v = threadIdx.x; v < words; v += 256) {
        int const group = int(divide(v / 8, p.yPacks)), b = (group * 8 + v % 8) * kSide, q = v / 8 - group * packs;
        if (b >= nb || q * kPack >= na)
            continue;
        u32 const* const s = reinterpret_cast<u32 const*>(shared) + (q * (kPack * p.pitch + p.skew) + b) / kSide;
        u32 w[kPack];
#pragma unroll
        for (int i = 0; i < kPack; ++i)
            w[i] = s[i * (p.pitch / kSide)];
#pragma unroll
        for (int side = 0; side < kSide; ++side) {
            if (b + side >= nb)
                continue;
            Element* const to = y + (b + side) * t.bStep + q * kPack;
            Whole const out = turned(w, side);
            if (q * kPack + kPack <= na)
                *reinterpret_cast<Whole*>(to) = out;
            else
#pragma unroll
                for (int i = 0; i < kPack; ++i)
                    if (q * kPack + i < na)
                        to[i] = elementOf(out.v[i / kSide] >> i % kSide * kSize * 8);
        }
    }
}

} // namespace tw::ops
