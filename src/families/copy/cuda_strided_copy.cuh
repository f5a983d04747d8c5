// SPDX-License-Identifier: Apache-2.0
// Boxes of elements in any order of the axes.
//   type Element; bool kBordered; int kStoreBytes
#pragma once

#include "families/copy/copy_params.h"
#include "families/copy/cuda_vec16.cuh"

namespace tw::ops {

constexpr int kEach = 4, kScatteredEach = 2, kPerStore = kStoreBytes / sizeof(Element);
// Of element i of y: its row's beginning in x (at column 0, or at the first one that is no border), its column, its row
// among neighbours; whether the row comes from x, and whether all does but for that.
struct Row
{
    off from, to;
    idx column, line;
    bool inside, isInner;
};
struct Search
{
    bool isFirst; // the dimension is the first that there is
    idx left;     // of the element's number, for the dimensions before
};
TW_INLINE void enterDimension(Row& at, Search& s, StridedCopyParams const& p, int r)
{
    idx const i = s.left;
    s.isFirst = r == 0 || r == p.first;
    s.left = s.isFirst ? 0 : divide(i, p.loop.dim[r]);
    idx const c = s.isFirst ? i : i - s.left * idx(p.loop.dim[r].d), there = kBordered ? c - idx(p.low[r]) : c;
    bool const isInside = !kBordered || there < idx(p.span[r]);
    if (r == 6)
        at.line = c, at.isInner = true; // isInner: of the other dimensions
    else
        at.isInner = at.isInner && isInside;
    at.inside = at.inside && isInside;
    at.from += off(there) * off(p.loop.stride[0][r]);
    at.to += off(c) * off(p.loop.stride[1][r]);
}
// UNROLLED is faster; where it stands many times, it takes seconds to compile.
template <bool UNROLLED = true>
TW_INLINE Row rowOf(StridedCopyParams const& p, idx i)
{
    bool const isFirst = p.first == 7;
    idx const q = isFirst ? 0 : divide(i, p.loop.dim[7]);
    Row at = {0, 0, isFirst ? i : i - q * idx(p.loop.dim[7].d), 0, true, true};
    at.to = off(at.column) * off(p.loop.stride[1][7]);
    Search s = {isFirst, q};
    if constexpr (UNROLLED) {
#pragma unroll
        for (int r = 6; r >= 0 && !s.isFirst; --r)
            enterDimension(at, s, p, r);
    } else {
#pragma unroll 1
        for (int r = 6; r >= 0 && !s.isFirst; --r)
            enterDimension(at, s, p, r);
    }
    return at;
}
template <class U>
TW_INLINE U filling(StridedCopyParams const& p)
{
    Pack<Element, sizeof(U) / sizeof(Element)> v = {};
    if (kBordered && p.fill) {
        Element const one = *static_cast<Element const*>(p.fill);
#pragma unroll
        for (int i = 0; i < int(sizeof(U) / sizeof(Element)); ++i)
            v.v[i] = one;
    }
    return *reinterpret_cast<U const*>(&v);
}
// Each unit lies together on both sides.
template <class U>
TW_INLINE void copyUnits(StridedCopyParams const& p)
{
    waitForPrevious();
    releaseDependents();
    idx const begin = idx(blockIdx.x) * idx(p.each) * 256 + threadIdx.x;
    U const fill = filling<U>(p);
    U v[kEach];
    off to[kEach];
#pragma unroll
    for (int k = 0; k < kEach; ++k) {
        idx const i = begin + k * 256;
        v[k] = fill;
        to[k] = 0;
        if (k < p.each && i < p.count) {
            Row const at = rowOf(p, i);
            idx const there = kBordered ? at.column - idx(p.low[7]) : at.column;
            to[k] = at.to;
            if (at.inside && (!kBordered || there < idx(p.span[7])))
                v[k] = static_cast<U const*>(p.x)[at.from + off(there) * off(p.loop.stride[0][7])];
        }
    }
#pragma unroll
    for (int k = 0; k < kEach; ++k)
        if (k < p.each && begin + k * 256 < p.count)
            static_cast<U*>(p.y)[to[k]] = v[k];
}
// y is dense: kStore bytes of it at a time, elements from anywhere.
TW_INLINE void copyScattered(StridedCopyParams const& p)
{
    waitForPrevious();
    releaseDependents();
    idx const begin = idx(blockIdx.x) * idx(p.each) * 256 + threadIdx.x;
    Element const fill = filling<Element>(p);
    Element const* const x = static_cast<Element const*>(p.x);
    Pack<Element, kPerStore> v[kScatteredEach];
    off const step = off(p.loop.stride[0][7]);
    off const lineStep = off(p.loop.stride[0][6]);
    idx const lines = idx(p.loop.dim[6].d), columns = idx(p.loop.dim[7].d), low = idx(p.low[7]), span = idx(p.span[7]);
#pragma unroll
    for (int k = 0; k < kScatteredEach; ++k) {
        idx const i = (begin + k * 256) * kPerStore;
#pragma unroll
        for (int e = 0; e < kPerStore; ++e)
            v[k].v[e] = fill;
        if (k >= p.each || i >= p.count)
            continue;
        Row at = rowOf(p, i);
#pragma unroll
        for (int e = 0; e < kPerStore; ++e) {
            if (at.column == columns) { // the next row
                if (i + e >= p.count)
                    break;
                if (++at.line < lines) {
                    at.column = 0;
                    at.from += lineStep;
                    at.inside = at.isInner && (!kBordered || at.line - idx(p.low[6]) < idx(p.span[6]));
                } else {
                    at = rowOf<false>(p, i + e);
                }
            }
            idx const there = kBordered ? at.column - low : at.column;
            if (at.inside && (!kBordered || there < span))
                v[k].v[e] = x[at.from + off(there) * step];
            ++at.column;
        }
    }
    Element* const y = static_cast<Element*>(p.y);
#pragma unroll
    for (int k = 0; k < kScatteredEach; ++k) {
        idx const i = (begin + k * 256) * kPerStore;
        if (k >= p.each || i >= p.count)
            continue;
        if (i + kPerStore <= p.count)
            *reinterpret_cast<Pack<Element, kPerStore>*>(y + i) = v[k];
        else
#pragma unroll
            for (int e = 0; e < kPerStore; ++e)
                if (i + e < p.count)
                    y[i + e] = v[k].v[e];
    }
}
// y is dense, and so are rows of x: words of 16 bytes. kDeep: of more than 3 dimensions.
template <bool kDeep>
struct MovedRows
{
    struct Spot
    {
        Row row;
        idx end;
    }; // of the row in y
    static constexpr bool kClips = kBordered;
    StridedCopyParams const& p;
    Whole filled;
    TW_INLINE Whole fill() const { return filled; }
    TW_INLINE bool isInside(idx c, int r) const { return !kBordered || c - idx(p.low[r]) < idx(p.span[r]); }
    TW_INLINE Spot spot(idx i) const
    {
        idx const columns = idx(p.loop.dim[7].d);
        if constexpr (kDeep) {
            Row const row = rowOf(p, i);
            return {row, i - row.column + columns};
        } else {
            idx const rows = divide(i, p.loop.dim[7]), plane = divide(rows, p.loop.dim[6]);
            Row row = {};
            row.column = i - rows * columns;
            row.line = rows - plane * idx(p.loop.dim[6].d);
            row.isInner = isInside(plane, 5);
            row.inside = row.isInner && isInside(row.line, 6);
            row.from = off(kBordered ? row.line - idx(p.low[6]) : row.line) * off(p.loop.stride[0][6]) +
                       off(kBordered ? plane - idx(p.low[5]) : plane) * off(p.loop.stride[0][5]);
            return {row, (rows + 1) * columns};
        }
    }
    TW_INLINE Spot next(Spot at) const
    {
        Row& row = at.row;
        if (++row.line >= idx(p.loop.dim[6].d))
            return spot(at.end);
        row.column = 0;
        row.from += off(p.loop.stride[0][6]);
        row.inside = row.isInner && isInside(row.line, 6);
        at.end += idx(p.loop.dim[7].d);
        return at;
    }
    TW_INLINE Piece piece(Spot const& at) const
    {
        off const column = off(at.row.column), low = kBordered ? off(p.low[7]) - column : -column,
                  high = !kBordered || !at.row.inside ? low : low + off(p.span[7]);
        return {p.words.x,
                off(p.words.at) + at.row.from - low,
                off(p.words.begin),
                idx(p.words.span),
                idx(p.loop.dim[7].d) - at.row.column,
                low,
                high};
    }
    TW_INLINE idx segment(idx i) const { return divide(i, p.loop.dim[7]); }
    TW_INLINE idx end(idx row) const { return (row + 1) * idx(p.loop.dim[7].d); }
};
template <bool kDeep>
TW_INLINE void copyByVec16(StridedCopyParams const& p)
{
    waitForPrevious();
    releaseDependents();
    copyVec16<sizeof(Element)>(MovedRows<kDeep>{p, filling<Whole>(p)}, p.y, idx(p.count), p.each);
}

} // namespace tw::ops
