// SPDX-License-Identifier: Apache-2.0
// Words of y joined from aligned words of the inputs.
#pragma once

#include "families/copy/cuda_vec16.cuh"
#include "ops/concatenation/concatenation_params.h"

namespace tw::ops::concatenation {

struct JoinedRows
{
    struct Spot
    {
        idx row, column;
        int k;
    };
    static constexpr bool kClips = true; // the gap
    Vec16Params const& p;
    TW_INLINE Whole fill() const { return {}; }
    TW_INLINE idx begin(int k) const { return k > 0 ? idx(p.end[k - 1]) : 0; }
    TW_INLINE Spot spot(idx i) const
    {
        idx const row = divide(i, p.columns), column = i - row * idx(p.columns.d);
        int k = 0;
        while (column >= idx(p.end[k]))
            ++k;
        return {row, column, k};
    }
    TW_INLINE Spot next(Spot at) const
    {
        at.column = idx(p.end[at.k]);
        if (++at.k == int(p.segments.d))
            at = {at.row + 1, 0, 0};
        return at;
    }
    TW_INLINE Piece piece(Spot const& at) const
    {
        idx const left = idx(p.end[at.k]) - at.column;
        if (at.k >= int(p.inputs))
            return {nullptr, 0, 0, 0, left, 0, 0};
        ContiguousSpan const& x = p.x[at.k];
        return {x.x,          off(x.at) + off(at.row) * off(p.step[at.k]) + off(at.column - begin(at.k)),
                off(x.begin), idx(x.span),
                left,         0,
                off(left)};
    }
    TW_INLINE idx segment(idx i) const
    {
        Spot const at = spot(i);
        return at.row * idx(p.segments.d) + at.k;
    }
    TW_INLINE idx end(idx segment) const
    {
        idx const row = divide(segment, p.segments);
        return row * idx(p.columns.d) + idx(p.end[segment - row * idx(p.segments.d)]);
    }
};
template <int S>
TW_INLINE void copyVec16Rows(Vec16Params const& p)
{
    waitForPrevious();
    releaseDependents();
    copyVec16<S>(JoinedRows{p}, p.y, idx(p.count), int(p.each));
}

} // namespace tw::ops::concatenation
