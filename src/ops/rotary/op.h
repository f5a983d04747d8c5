// SPDX-License-Identifier: Apache-2.0
// Rotary positions: of the last dimension, [n], the first `size` elements are pairs that are turned by angles:
//   y[d] = x[d] c[d] - x[e] s[d]     y[e] = x[e] c[e] + x[d] s[e]     for each pair d < e
//   halves: e = d + size / 2;  neighbours (interleaved): d even, e = d + 1.        y[d] = x[d] for d >= size.
// x, y: f32 or f16, one shape. c, s (cosines and sines, though nothing asks for that): of x's type and rank, each dimension
// that of x or 1, the last one `size`; or half of it, a number for each pair. With `heads` x is [B, S, w], and the rows that are turned are
// [B, S, heads, rowSize] of it, neighbours from column `offset` on, as a projection has them; y is these. Made by passes; the node's body holds the
// nodes it stands for.
#pragma once

#include "ir/attrs.h"

namespace tw::ops::rotary {

struct Attrs : ir::AttrsOf<Attrs>
{
    int64_t size = 0; // even
    bool interleaved = false;
    int64_t heads = 0, offset = 0, rowSize = 0; // heads 0: all of x

    bool isPacked() const { return heads > 0; }
    // Where row `row` of y comes from, of rows of n elements.
    int64_t rowOfX(int64_t row, int64_t n, int64_t width) const
    {
        return isPacked() ? offset + row / heads * width + row % heads * n : row * n;
    }
    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "size", size);
        v.field(2, "interleaved", interleaved);
        v.field(3, "heads", heads);
        v.field(4, "offset", offset);
        v.field(5, "row_size", rowSize);
    }
};

} // namespace tw::ops::rotary
