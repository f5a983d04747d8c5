// SPDX-License-Identifier: Apache-2.0
// What exporters write against softmax of a row that a mask leaves nothing of, where(isnan(p), 0, p), behind the attention that p was in.
// Weights of a row are all NaN or none is, so that its result is that of weights of 0 then:
//   z[b, i, h * valueSize + d] = y[..] where it is a number, else the sum over keys j of 0 * v[b, g, j, d], g = floor(h / headsPerKey)
// which is 0, or NaN where one of these values is no finite number (so that a NaN that comes of the values stays).
//   y (f32, f16 or bf16): what attention gave, [B, Si, heads * valueSize], or [Si, B, ..] with rowsFirst. v: its values, of y's type or i8, lying as
//   attention reads them (ops/attention/op.h). With `lengths` the next input, i32 [B], and with `pages` the one behind it, i32 [B, P], as there.
// Values are read for results that are NaN alone.
#pragma once

#include <cmath>
#include <cstring>

#include "base/element.h"
#include "ops/attention/op.h"

namespace tw::ops::attention_guard {

struct Attrs : ir::AttrsOf<Attrs>
{
    int64_t heads = 1, valueSize = 1, headsPerKey = 1;
    attention::Operand v;
    bool rowsFirst = false, lengths = false, pages = false;

    int64_t keyHeads() const { return heads / headsPerKey; }
    size_t inputs() const { return size_t(2 + lengths + pages); }
    void visit(ir::AttrVisitor& visitor) override
    {
        visitor.field(1, "heads", heads);
        visitor.field(2, "value_size", valueSize);
        visitor.field(3, "heads_per_key", headsPerKey);
        v.visit(visitor, 4, "v_offset", "v_head_stride");
        visitor.field(6, "v_rows_first", v.rowsFirst);
        visitor.field(7, "rows_first", rowsFirst);
        visitor.field(8, "lengths", lengths);
        visitor.field(9, "pages", pages);
    }
};

// The bits of floating numbers that are all set in one that is not finite, and in a NaN.
inline uint32_t exponentOf(DataType t)
{
    return withFloat(t, [](auto element) {
        storeElement(element, INFINITY);
        uint32_t bits = 0;
        std::memcpy(&bits, &element, sizeof element);
        return bits;
    });
}
inline uint32_t nanOf(DataType t)
{
    return exponentOf(t) | exponentOf(t) >> 1;
}

// Sizes and strides at run time; keys of an image are `columns`, or what its length says.
struct Geometry
{
    int64_t batch = 0, rows = 0, columns = 0, blocks = 0;
    attention::Strides v; // those of batches are of blocks with pages
    int lengthsInput = -1, pagesInput = -1;
};
Geometry geometryOf(Attrs const& a, std::span<TensorRef const> inputs);

} // namespace tw::ops::attention_guard
