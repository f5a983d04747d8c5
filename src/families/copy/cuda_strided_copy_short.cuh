// SPDX-License-Identifier: Apache-2.0
// Transposes where rows are short.
#pragma once

#include "families/copy/copy_params.h"
#include "families/copy/cuda_strided_copy_tiles.cuh"

namespace tw::ops {

// Packs of a span of x; how many elements of the first one lie before it.
TW_INLINE int readStretch(ShortParams const& p, off begin, int length, off present)
{
    int const shift = int(begin & (kPack - 1)), packs = (length + shift + kPack - 1) / kPack;
    for (int v = threadIdx.x; v < packs; v += blockDim.x) {
        off const e = begin - shift + v * kPack;
        Element const* const from = static_cast<Element const*>(p.box.x) + e;
        if (v * kPack - shift + kPack <= present && e >= off(p.box.xBegin) && e + kPack <= off(p.box.xEnd)) {
#if __CUDA_ARCH__ >= 800
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(u32(__cvta_generic_to_shared(shared + v))),
                         "l"(from)
                         : "memory");
#else
            shared[v] = *reinterpret_cast<Whole const*>(from);
#endif
        } else {
            for (int i = 0; i < kPack; ++i)
                reinterpret_cast<Element*>(shared + v)[i] =
                    v * kPack - shift + i < present && e + i >= off(p.box.xBegin) && e + i < off(p.box.xEnd)
                        ? from[i]
                        : Element{};
        }
    }
    copiesDone();
    return shift;
}
// Tiles that follow the rows of y: in each a tile begins where its neighbour before it ends, at a multiple of
// `slack`, so that all that is written are whole packs but for a row's own ends. kWidth: words of a row of x in shared
// memory; 0: the tile is one span of x.
TW_INLINE void copySpan(ShortParams const& p)
{
    TileBox const& t = p.box;
    idx const rest = divide(blockIdx.x, p.tilesB), other = divide(rest, p.tilesA);
    off at[2];
    locateBox(t.others, other, at);
    off const first = off(rest - other * idx(p.tilesA.d)) * p.tileA - p.slack, most = off(t.a) - first;
    int const rows = p.tileA + p.slack, nb = int(t.b), low = first < 0 ? int(-first) : 0,
              high = most < rows ? int(most) : rows;
    off const yRow = off(t.yAt) + at[1];
    waitForPrevious();
    releaseDependents();
    int const shift =
        readStretch(p, off(t.xAt) + at[0] + (first + low) * nb, (high - low) * nb, (off(t.present) - first - low) * nb);
    Element const* const s = reinterpret_cast<Element const*>(shared) + shift;
    int const packs = int(p.packs.d), lanes = int(p.lanes.d), total = (nb + lanes - 1) / lanes * lanes * packs;
    for (int v = threadIdx.x; v < total; v += blockDim.x) {
        int const line = int(divide(v, p.lanes)), group = int(divide(line, p.packs)),
                  c = group * lanes + v - line * lanes;
        off const to = yRow + c * off(t.bStep);
        int const r = p.slack - (int(to) & p.phases) + (line - group * packs) * kPack;
        if (c >= nb || r >= high || r + kPack <= low)
            continue;
        Element* const y = static_cast<Element*>(t.y) + to + (first + r);
        if (r >= low && r + kPack <= high) {
            Whole out = {};
            Element const* e = s + (r - low) * nb + c;
#pragma unroll
            for (int i = 0; i < kPack; ++i, e += nb)
                out.v[i / kSide] |= u32(e->v) << i % kSide * kSize * 8;
            *reinterpret_cast<Whole*>(y) = out;
        } else {
#pragma unroll
            for (int i = 0; i < kPack; ++i)
                if (r + i >= low && r + i < high)
                    y[i] = s[(r + i - low) * nb + c];
        }
    }
}
// Whole rows, by words: a warp each, or several where there are fewer rows than warps.
TW_INLINE void readRows(ShortParams const& p, off xRow, int na, int nb)
{
    TileBox const& t = p.box;
    int const warps = blockDim.x / 32, warp = threadIdx.x / 32, parts = int(p.parts), step = parts * 32;
    int const part = parts > 1 ? warp / na : 0, from = (part * 32 + threadIdx.x % 32) * kSide;
    if (part >= parts)
        return;
    Element* const s = reinterpret_cast<Element*>(shared);
    Element const* const x = static_cast<Element const*>(t.x);
    off const aStep = off(t.aStep), begin = off(t.xBegin), end = off(t.xEnd), present = off(t.present);
    bool const inside = xRow >= begin + kSide && xRow + (na - 1) * aStep + nb + kSide <= end && na <= present;
    for (int r = warp - part * na; r<na; r += parts> 1 ? na : warps) {
        off const e = xRow + r * aStep, shift = e & (kSide - 1);
        Element const* const row = x + (e - shift);
        Element* const to = s + r * p.pitch * kSide;
        int const length = nb + int(shift);
        if (inside)
            for (int w = from; w < length; w += step * kSide)
                copyAsync<4>(to + w, row + w);
        else
            for (int w = from; w < length; w += step * kSide)
#pragma unroll
                for (int i = 0; i < kSide; ++i) {
                    off const at = e - shift + w + i;
                    to[w + i] = r < present && at >= begin && at < end ? row[w + i] : Element{};
                }
    }
}
// Tiles that are whole rows of y, one span of it.
TW_INLINE void copyWhole(ShortParams const& p)
{
    TileBox const& t = p.box;
    idx const other = divide(blockIdx.x, p.tilesB);
    off at[2];
    locateBox(t.others, other, at);
    off const b0 = off(blockIdx.x - other * idx(p.tilesB.d)) * p.tileB;
    int const na = int(t.a), nb = int(off(t.b) - b0 < p.tileB ? off(t.b) - b0 : p.tileB);
    off const xRow = off(t.xAt) + at[0] + b0, yRow = off(t.yAt) + at[1] + b0 * off(t.bStep);
    waitForPrevious();
    releaseDependents();
    readRows(p, xRow, na, nb);
    copiesDone();
    Element const* const s = reinterpret_cast<Element const*>(shared);
    Element* const y = static_cast<Element*>(t.y) + yRow;
    int const length = na * nb, m = int(yRow & (8 * kPack - 1)), pitch = p.pitch * kSide, groups = int(p.groups.d);
    // A thread has packs that are na of them apart, kPack rows of y: all begin at the same place of a row.
    int group = int(divide(threadIdx.x, p.packs));
    if (group >= groups)
        return;
    int o = (int(threadIdx.x) - group * na) * kPack - m;
    // Blocks write whole lines from their first one on: lanes may lie before the span.
    int const ahead = o < 0 ? int(divide(-o + na * kPack - 1, p.period)) : 0, begin = o + ahead * na * kPack;
    int from[kPack];
    int b = int(divide(begin, p.packs)), a = begin - b * na;
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
        from[i] = a * pitch + b + (int(xRow + a * off(t.aStep)) & (kSide - 1)) + (group - ahead) * kPack;
        if (++a == na)
            a = 0, ++b;
    }
    int const step = na * kPack;
    for (o += group * step; o < length; o += groups * step) {
        if (o >= 0 && o + kPack <= length) {
            Whole out = {};
#pragma unroll
            for (int i = 0; i < kPack; ++i)
                out.v[i / kSide] |= u32(s[from[i]].v) << i % kSide * kSize * 8;
            *reinterpret_cast<Whole*>(y + o) = out;
        } else {
#pragma unroll
            for (int i = 0; i < kPack; ++i)
                if (o + i >= 0 && o + i < length)
                    y[o + i] = s[from[i]];
        }
#pragma unroll
        for (int i = 0; i < kPack; ++i)
            from[i] += groups * kPack;
    }
}
// The same where rows of x begin at packs: shared memory holds what y will. A warp reads whole lines of 4 rows.
TW_INLINE void copyWholeEven(ShortParams const& p)
{
    TileBox const& t = p.box;
    idx const other = divide(blockIdx.x, p.tilesB);
    off at[2];
    locateBox(t.others, other, at);
    off const b0 = off(blockIdx.x - other * idx(p.tilesB.d)) * p.tileB;
    int const na = int(t.a), nb = int(off(t.b) - b0 < p.tileB ? off(t.b) - b0 : p.tileB);
    off const xRow = off(t.xAt) + at[0] + b0, yRow = off(t.yAt) + at[1] + b0 * off(t.bStep);
    int const length = na * nb, m = int(yRow & (8 * kPack - 1)), lane = threadIdx.x % 32;
    int const lines = int(p.lanes.d), total = (na + 3) / 4 * lines;
    Element* const s = reinterpret_cast<Element*>(shared) + m;
    waitForPrevious();
    releaseDependents();
    for (int begin = threadIdx.x / 32; begin < total; begin += 4 * 8) {
        Whole in[4]; // in flight together
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            int const j = begin + k * 8, group = int(divide(j, p.lanes)), a = group * 4 + lane / 8,
                      b = ((j - group * lines) * 8 + lane % 8) * kPack;
            in[k] = Whole{};
            if (j < total && a < na && b < nb && a < t.present)
                in[k] = packAt(t, xRow + a * off(t.aStep) + b);
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            int const j = begin + k * 8, group = int(divide(j, p.lanes)), a = group * 4 + lane / 8,
                      b = ((j - group * lines) * 8 + lane % 8) * kPack;
            if (j >= total || a >= na)
                continue;
            Element* to = s + b * na + a;
#pragma unroll
            for (int i = 0; i < kPack; ++i, to += na)
                if (b + i < nb)
                    *to = elementOf(in[k].v[i / kSide] >> i % kSide * kSize * 8);
        }
    }
    __syncthreads();
    Element* const y = static_cast<Element*>(t.y) + yRow - m;
    for (int v = threadIdx.x; v * kPack < length + m; v += 256) {
        int const o = v * kPack;
        if (o >= m && o + kPack <= length + m)
            reinterpret_cast<Whole*>(y)[v] = shared[v];
        else
            for (int i = o < m ? m : o; i < o + kPack && i < length + m; ++i)
                y[i] = s[i - m];
    }
}
// The same of kCount rows of x that begin at packs: a pack of each is turned in registers.
template <int kCount>
TW_INLINE void copyFew(ShortParams const& p)
{
    TileBox const& t = p.box;
    idx const other = divide(blockIdx.x, p.tilesB), tile = blockIdx.x - other * idx(p.tilesB.d);
    off at[2];
    locateBox(t.others, other, at);
    off const xRow = off(t.xAt) + at[0], yRow = off(t.yAt) + at[1];
    idx const packs = idx(t.b) / kPack, first = tile * 256, v = first + threadIdx.x;
    waitForPrevious();
    releaseDependents();
    Whole in[kCount];
#pragma unroll
    for (int r = 0; r < kCount; ++r) {
        in[r] = Whole{};
        if (v < packs && r < t.present)
            in[r] = *reinterpret_cast<Whole const*>(static_cast<Element const*>(t.x) + xRow + r * off(t.aStep) +
                                                    off(v) * kPack);
    }
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
        Whole out = {};
#pragma unroll
        for (int k = 0; k < kPack; ++k) {
            int const b = (j * kPack + k) / kCount, a = (j * kPack + k) % kCount;
            u32 const value =
                in[a].v[b / kSide] >> b % kSide * kSize * 8 & (kSize == 4 ? 0xffffffffu : (1u << kSize * 8 % 32) - 1);
            out.v[k / kSide] |= value << k % kSide * kSize * 8;
        }
        shared[threadIdx.x * kCount + j] = out;
    }
    __syncthreads();
    Whole* const y = reinterpret_cast<Whole*>(static_cast<Element*>(t.y) + yRow) + first * kCount;
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
        idx const w = j * 256 + threadIdx.x;
        if (first * kCount + w < packs * kCount)
            y[w] = shared[w];
    }
}
// The other way: rows of x are kCount elements, rows of y begin at packs and are whole ones.
template <int kCount>
TW_INLINE void copyToFew(ShortParams const& p)
{
    TileBox const& t = p.box;
    idx const other = divide(blockIdx.x, p.tilesA), tile = blockIdx.x - other * idx(p.tilesA.d);
    off at[2];
    locateBox(t.others, other, at);
    idx const packs = idx(t.a) / kPack, first = tile * 256, v = first + threadIdx.x;
    Whole const* const x =
        reinterpret_cast<Whole const*>(static_cast<Element const*>(t.x) + off(t.xAt) + at[0]) + first * kCount;
    waitForPrevious();
    releaseDependents();
    Whole in[kCount];
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
        idx const w = j * 256 + threadIdx.x;
        in[j] = Whole{};
        if (first * kCount + w < packs * kCount)
            in[j] = x[w];
    }
#pragma unroll
    for (int j = 0; j < kCount; ++j)
        shared[j * 256 + threadIdx.x] = in[j];
    __syncthreads();
#pragma unroll
    for (int j = 0; j < kCount; ++j)
        in[j] = shared[threadIdx.x * kCount + j];
    if (v >= packs)
        return;
    Element* y = static_cast<Element*>(t.y) + off(t.yAt) + at[1] + off(v) * kPack;
#pragma unroll
    for (int b = 0; b < kCount; ++b, y += t.bStep) {
        Whole out = {};
#pragma unroll
        for (int k = 0; k < kPack; ++k) {
            int const e = k * kCount + b;
            u32 const value = in[e / kPack].v[e % kPack / kSide] >> e % kSide * kSize * 8 &
                              (kSize == 4 ? 0xffffffffu : (1u << kSize * 8 % 32) - 1);
            out.v[k / kSide] |= value << k % kSide * kSize * 8;
        }
        *reinterpret_cast<Whole*>(y) = out;
    }
}

} // namespace tw::ops
