// SPDX-License-Identifier: Apache-2.0
// Elements and rows by index.
//   type Element
#pragma once

#include "families/copy/cuda_vec16.cuh"
#include "ops/gather/gather_params.h"

namespace tw::ops::gather {

constexpr int kEach = 4, kPerStore = 4 / sizeof(Element), kPerRowStore = 8 / sizeof(Element);
struct Place
{
    off x;
    i32 const* j;
};
// From what the dimensions up to kLast count.
template <int kLast = 7>
TW_INLINE Place placeOf(GatherParams const& p, idx i)
{
    off x = 0, j = 0;
#pragma unroll
    for (int r = kLast; r >= 0; --r) {
        bool const isFirst = r == 0 || r <= p.first;
        idx const q = isFirst ? 0 : divide(i, p.loop.dim[r]), c = isFirst ? i : i - q * idx(p.loop.dim[r].d);
        x += off(c) * off(p.loop.stride[0][r]);
        j += off(c) * off(p.loop.stride[1][r]);
        if (isFirst)
            break;
        i = q;
    }
    return {x, static_cast<i32 const*>(p.j) + j};
}
// `index`: the first one. False: one of them lies outside.
TW_INLINE bool follow(GatherParams const& p, Place& at, i64 index)
{
    bool inside = true;
    for (int k = 0;;) {
        index = index < 0 ? index + p.size[k] : index;
        inside = inside && index >= 0 && index < p.size[k];
        at.x += off(index * p.stride[k]);
        if (++k >= p.indices)
            return inside;
        index = at.j[k];
    }
}
template <class U, int N, class Out>
TW_INLINE void gather(GatherParams const& p, Out&& out)
{
    releaseDependents();
    idx const begin = idx(blockIdx.x) * idx(p.each) * 256 + threadIdx.x;
    Place at[kEach][N];
    i32 index[kEach][N];
    auto isThere = [&](int k, int e) { return k < p.each && (begin + k * 256) * N + e < p.count; };
#pragma unroll
    for (int k = 0; k < kEach; ++k)
#pragma unroll
        for (int e = 0; e < N; ++e)
            if (isThere(k, e))
                at[k][e] = placeOf(p, (begin + k * 256) * N + e);
    waitForPrevious();
#pragma unroll
    for (int k = 0; k < kEach; ++k)
#pragma unroll
        for (int e = 0; e < N; ++e)
            if (isThere(k, e))
                index[k][e] = p.indices > 0 ? *at[k][e].j : 0;
    U v[kEach][N];
#pragma unroll
    for (int k = 0; k < kEach; ++k)
#pragma unroll
        for (int e = 0; e < N; ++e) {
            v[k][e] = U{};
            if (isThere(k, e) && (p.indices == 0 || follow(p, at[k][e], index[k][e])))
                v[k][e] = static_cast<U const*>(p.x)[at[k][e].x];
        }
#pragma unroll
    for (int k = 0; k < kEach; ++k)
        if (k < p.each)
            out((begin + k * 256) * N, v[k]);
}
template <class U>
TW_INLINE void gatherUnits(GatherParams const& p)
{
    gather<U, 1>(p, [&](idx i, U const(&v)[1]) {
        if (i < p.count)
            static_cast<U*>(p.y)[i] = v[0];
    });
}
// 4 bytes of y at a time, elements from anywhere.
TW_KERNEL __launch_bounds__(256) gather_scattered(const __grid_constant__ GatherParams p)
{
    gather<Element, kPerStore>(p, [&](idx i, Element const(&v)[kPerStore]) {
        Element* const y = static_cast<Element*>(p.y) + i;
        Pack<Element, kPerStore> pack;
#pragma unroll
        for (int e = 0; e < kPerStore; ++e)
            pack.v[e] = v[e];
        if (i + kPerStore <= p.count)
            *reinterpret_cast<Pack<Element, kPerStore>*>(y) = pack;
        else
#pragma unroll
            for (int e = 0; e < kPerStore; ++e)
                if (i + e < p.count)
                    y[e] = v[e];
    });
}
// The same where an index stands for a whole row of y.
struct Row
{
    Place at;
    idx column;
    bool inside;
};
TW_INLINE Row rowOf(GatherParams const& p, idx i)
{
    idx const columns = idx(p.loop.dim[7].d), row = p.first == 7 ? 0 : divide(i, p.loop.dim[7]);
    Row r = {placeOf(p, row * columns), i - row * columns, true};
    r.inside = p.indices == 0 || follow(p, r.at, *r.at.j);
    return r;
}
TW_KERNEL __launch_bounds__(256) gather_scattered_rows(const __grid_constant__ GatherParams p)
{
    releaseDependents();
    idx const i = threadIndex() * kPerRowStore, columns = idx(p.loop.dim[7].d);
    if (i >= p.count)
        return;
    waitForPrevious();
    Element const* const x = static_cast<Element const*>(p.x);
    off const step = off(p.loop.stride[0][7]);
    Row r = rowOf(p, i);
    Pack<Element, kPerRowStore> pack;
#pragma unroll
    for (int e = 0; e < kPerRowStore; ++e) {
        pack.v[e] = Element{};
        if (r.column == columns) {
            if (i + e >= p.count)
                break;
            r = rowOf(p, i + e);
        }
        if (r.inside)
            pack.v[e] = x[r.at.x + off(r.column) * step];
        ++r.column;
    }
    Element* const y = static_cast<Element*>(p.y) + i;
    if (i + kPerRowStore <= p.count)
        *reinterpret_cast<Pack<Element, kPerRowStore>*>(y) = pack;
    else
#pragma unroll
        for (int e = 0; e < kPerRowStore; ++e)
            if (i + e < p.count)
                y[e] = pack.v[e];
}
// Long rows, by words.
struct GatheredRows
{
    struct Spot
    {
        Place at;
        idx column, end;
        i32 index;
    };
    static constexpr bool kClips = true;
    GatherParams const& p;
    TW_INLINE Whole fill() const { return {}; }
    TW_INLINE Spot spot(idx i) const
    {
        idx const columns = idx(p.loop.dim[7].d), row = divide(i, p.loop.dim[7]), begin = row * columns;
        Place const at = placeOf<6>(p, row);
        return {at, i - begin, begin + columns, p.indices > 0 ? *at.j : 0};
    }
    TW_INLINE Spot next(Spot const& at) const { return spot(at.end); }
    TW_INLINE Piece piece(Spot const& spot) const
    {
        Place at = spot.at;
        bool const inside = p.indices == 0 || follow(p, at, spot.index);
        idx const left = idx(p.loop.dim[7].d) - spot.column;
        return {p.words.x,
                off(p.words.at) + at.x + off(spot.column),
                off(p.words.begin),
                idx(p.words.span),
                left,
                0,
                inside ? off(left) : 0};
    }
    TW_INLINE idx segment(idx i) const { return divide(i, p.loop.dim[7]); }
    TW_INLINE idx end(idx row) const { return (row + 1) * idx(p.loop.dim[7].d); }
};
TW_KERNEL __launch_bounds__(256) gather_words(const __grid_constant__ GatherParams p)
{
    waitForPrevious();
    releaseDependents();
    copyVec16<sizeof(Element)>(GatheredRows{p}, p.y, idx(p.count), p.each);
}

} // namespace tw::ops::gather
