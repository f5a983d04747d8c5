// SPDX-License-Identifier: Apache-2.0
// A tile has spans of x, rows of b, which lie in shared memory as they came; of y, rows of a, words are put
// together from elements. A thread has the same word of several rows of b: they differ by a constant on both sides.
#pragma once

#include "families/copy/copy_params.h"
#include "families/copy/cuda_strided_copy_tiles.cuh"

namespace tw::ops {

TW_INLINE u32 sideOf(Element const* s, int const (&from)[kSide])
{
    u32 v = 0;
#pragma unroll
    for (int i = 0; i < kSide; ++i)
        v |= u32(s[from[i]].v) << i * kSize * 8 % 32;
    return v;
}
TW_INLINE void copyRows(RowParams const& p)
{
    idx i = divide(blockIdx.x, p.tilesB), rest = divide(i, p.tilesA);
    int const b0 = int(blockIdx.x - i * idx(p.tilesB.d)) * p.tileB, a0 = int(i - rest * idx(p.tilesA.d)) * p.tileA;
    off at[2];
    locateBox(p.others, rest, at);
    int const na = p.a - a0 < p.tileA ? p.a - a0 : p.tileA, nb = p.b - b0 < p.tileB ? p.b - b0 : p.tileB,
              n = int(p.length.d);
    off const xRow = off(p.xAt) + at[0] + a0 * off(p.aStep) + off(b0) * n, lineStep = p.isOne ? 0 : off(p.aStep);
    waitForPrevious();
    releaseDependents();
    {
        int const packs = int(p.packs.d), lines = p.isOne ? 1 : na, length = p.isOne ? na * nb * n : nb * n;
        for (int v = threadIdx.x; v < lines * packs; v += 256) {
            int const line = int(divide(v, p.packs)), q = v - line * packs;
            off const begin = xRow + line * lineStep, shift = begin & (kPack - 1), e = begin - shift + q * kPack;
            if (q * kPack >= int(shift) + length)
                continue;
            Element const* const from = static_cast<Element const*>(p.x) + e;
            Whole* const to = shared + line * (p.pitch / kPack) + q;
            if (e >= off(p.xBegin) && e + kPack <= off(p.xEnd)) {
#if __CUDA_ARCH__ >= 800
                asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(u32(__cvta_generic_to_shared(to))),
                             "l"(from)
                             : "memory");
#else
                *to = *reinterpret_cast<Whole const*>(from);
#endif
            } else {
                for (int k = 0; k < kPack; ++k)
                    reinterpret_cast<Element*>(to)[k] =
                        e + k >= off(p.xBegin) && e + k < off(p.xEnd) ? from[k] : Element{};
            }
        }
    }
    copiesDone();
    Element const* const s = reinterpret_cast<Element const*>(shared);
    int const words = int(p.words.d), length = na * n, step = p.step;
    for (int v = threadIdx.x; v < words * step; v += 256) {
        int const b = int(divide(v, p.words));
        if (b >= nb)
            break;
        off const to = off(p.yAt) + at[1] + (b0 + b) * off(p.bStep) + off(a0) * n;
        int const o = (v - b * words) * kSide - (int(to) & (128 / kSize - 1));
        if (o <= -kSide || o >= length)
            continue;
        int from[kSide];
        int const r0 = o < 0 ? 0 : int(divide(o, p.length));
#pragma unroll
        for (int k = 0; k < kSide; ++k) {
            int const r = o + k >= (r0 + 1) * n ? r0 + 1 : r0;
            from[k] = r * p.pitch + int((xRow + r * lineStep) & (kPack - 1)) + (o + k - r * n) + b * n;
        }
        Element* y = static_cast<Element*>(p.y) + to + o;
        i64 const yStep = i64(step) * p.bStep;
        if (o >= 0 && o + kSide <= length) {
#pragma unroll 4
            for (int h = b; h < nb; h += step, y += yStep) {
                *reinterpret_cast<u32*>(y) = sideOf(s, from);
#pragma unroll
                for (int k = 0; k < kSide; ++k)
                    from[k] += step * n;
            }
        } else {
            for (int h = b; h < nb; h += step, y += yStep)
#pragma unroll
                for (int k = 0; k < kSide; ++k) {
                    if (o + k >= 0 && o + k < length)
                        y[k] = s[from[k]];
                    from[k] += step * n;
                }
        }
    }
}

} // namespace tw::ops
