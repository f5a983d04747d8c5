// SPDX-License-Identifier: Apache-2.0
// In shared memory a row of x lies as it came, from a unit of x's own on, and a unit is left out after kPack rows.
// What is written are whole sectors of y: a tile begins in each row of y where its neighbour before ends, up to a
// sector earlier than in the first. What lies across two rows of y is written by the last tile of the first one, which
// reads the first rows of x again, a column further. A thread has the packs of columns that are kStep apart: they lie
// alike in shared memory and in their sectors.
// kUnitBytes are read at a time, kRowBytes lie from row to row.
#pragma once

#include "families/copy/copy_params.h"
#include "families/copy/cuda_strided_copy_tiles.cuh"

namespace tw::ops {

template <int kUnitBytes, int kRowBytes>
TW_INLINE void copyUnaligned(UnalignedParams const& p)
{
    constexpr int kUnit = kUnitBytes / kSize, kPitch = kRowBytes / kSize, kUnits = kPitch / kUnit, kStep = 32 / kSize;
    TileBox const& t = p.box;
    idx const rest = divide(blockIdx.x, p.tilesB), other = divide(rest, p.tilesA);
    off at[2];
    locateBox(t.others, other, at);
    off const b0 = off(blockIdx.x - rest * idx(p.tilesB.d)) * p.tileB,
              first = off(rest - other * idx(p.tilesA.d)) * p.tileA - p.slack, most = off(t.a) - first;
    int const rows = p.tileA + p.slack, nb = int(off(t.b) - b0 < p.tileB ? off(t.b) - b0 : p.tileB);
    // Rows low .. end of the tile are this column's; after them come the first ones of the next column.
    int const low = first < 0 ? int(-first) : 0, end = most < rows ? int(most) : rows,
              high = p.wraps ? (end + p.slack < rows ? end + p.slack : rows) : end;
    off const aStep = off(t.aStep), xRow = off(t.xAt) + at[0] + b0 + first * aStep,
              yRow = off(t.yAt) + at[1] + b0 * off(t.bStep), back = 1 - off(t.a) * aStep,
              present = p.wraps ? rows : off(t.present) - first;
    waitForPrevious();
    releaseDependents();
    Element* const s = reinterpret_cast<Element*>(shared);
    {
        int const u = threadIdx.x % kUnits * kUnit, step = blockDim.x / kUnits;
        Element const* const x = static_cast<Element const*>(t.x);
        off const xBegin = off(t.xBegin), xEnd = off(t.xEnd);
        bool const inside = end <= present &&
                            (high > end ? xRow - first * aStep : xRow + low * aStep) - kUnit >= xBegin &&
                            xRow + (end - 1) * aStep + nb + kUnit <= xEnd;
        int r = low + threadIdx.x / kUnits;
        off e = xRow + r * aStep;
        for (; r < high; r += step, e += step * aStep) {
            off const there = r < end ? e : e + back;
            int const shift = int(there & (kUnit - 1));
            if (u >= nb + shift)
                continue;
            Element* const to = s + r * kPitch + unsigned(r) / kPack * kUnit + u;
            off const from = there - shift + u;
            if (inside || (r < present && from >= xBegin && from + kUnit <= xEnd))
                copyAsync<kUnit * kSize>(to, x + from);
            else
                for (int i = 0; i < kUnit; ++i)
                    to[i] = r < present && from + i >= xBegin && from + i < xEnd ? x[from + i] : Element{};
        }
    }
    copiesDone();
    int const c0 = int(divide(threadIdx.x, p.packs)), packs = int(p.packs.d);
    off const to = yRow + c0 * off(t.bStep);
    int const q = threadIdx.x - c0 * packs, phase = int(to) & p.phases, r = p.slack - phase + q * kPack,
              in = r & (kPack - 1);
    if (r >= high || r + kPack <= low)
        return;
    int from[kPack];
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
        off const e = xRow + (r + i) * aStep + (r + i < end ? 0 : back);
        from[i] = (r + i) * kPitch + (r / kPack + (in + i >= kPack ? 1 : 0)) * kUnit + (int(e) & (kUnit - 1)) + c0;
    }
    Element* y = static_cast<Element*>(t.y) + to + (first + r);
    i64 const yStep = i64(kStep) * t.bStep;
    // The two ends of a row of y: where rows follow one another, the last tile writes what lies across, by whole packs.
    // Single elements at the ends of all rows, and of each where they do not.
    bool const isFront = p.wraps && first < 0 && phase && q<kStep / kPack, isBehind = r + kPack> end;
    if (p.wraps && isBehind && r - q % (kStep / kPack) * kPack >= end)
        return;
    int quick = nb; // columns by whole packs
    if (isFront)
        quick = 0;
    else if (r < low || (isBehind && !p.wraps))
        quick = 0;
    else if (isBehind && b0 + nb == off(t.b))
        quick = nb - 1;
    int c = c0;
#pragma unroll 4
    for (; c < quick; c += kStep, y += yStep) {
        Whole out = {};
#pragma unroll
        for (int i = 0; i < kPack; ++i)
            out.v[i / kSide] |= u32(s[from[i] + (c - c0)].v) << i % kSide * kSize * 8;
        *reinterpret_cast<Whole*>(y) = out;
    }
    if (quick == nb || (p.wraps && isFront && b0 + c0 > 0))
        return;
    for (; c < nb; c += kStep, y += yStep) {
#pragma unroll
        for (int i = 0; i < kPack; ++i)
            if (r + i >= low && r + i < end)
                y[i] = s[from[i] + (c - c0)];
        if (p.wraps)
            return;
    }
}

} // namespace tw::ops
