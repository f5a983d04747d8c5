// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention of several heads:
//   t[b,h,i,j] = scale * sum over d of q[b,h,i,d] k[b,g,j,d], g = floor(h / headsPerKey);
//                `fill` instead where keep[b,h,i,j] is false (keepInverted: true);  + mask[b,h,i,j]
//   y[b, i, h * valueSize + d] = sum over j of softmax_j(t[b,h,i,j]) v[b,g,j,d]
// What a quantize and a dequantize in between round, where their step is above 0: scale q k (scoreStep), t (sumStep) and
// the softmax's result (weightStep), each to step * r with r the quotient by the step, half to even in [-128, 127]; NaN
// gives 0. A key that a mask hides by -infinity weighs exp(-128 sumStep - m) then.
// q, k, v (f32 or f16, one type; they may be one tensor) lie in one of three ways, see Operand. y: [B, Si, heads *
// valueSize], [Si, B, heads * valueSize] with rowsFirst. Inputs from 3 on (optional, each at most once): mask, of q's type,
// and keep, b; rank 4, their dimensions those of t or 1, the last one that of t.
// With `segments` the next input says where sequences begin that lie one behind the other, i32 [n], and Si is Sj: j goes over
// the rows of i's sequence alone, from a begin (or row 0) up to the next one that is larger (or the last row). Going through
// them in order, one that is no larger than one in front of it begins nothing: for rows up to the first begin above i,
//   from = max(0, those), to = min(S, that begin)
// Lengths, positions and what else decoders have, each with or without the others:
//   lengths  the input behind the masks, i32 [B]: image b has keys 0 to L - 1, L = lengths[b] within 0..Sj, in place of Sj; queries are
//            the last Si of them: query i stands at position p = L - Si + i (with `segments` at i). Rows without keys give 0
//   causal   a query sees keys j <= p
//   window   above 0: keys j > p - window
//   softcap  above 0: scale q k becomes softcap * tanh(scale q k / softcap)
//   sinks    the next input, of q's type, [heads]: a score of head h more, whose weight goes nowhere
//   slopes   the next input, f32 [heads]: slopes[h] * (j - p) is added, as the masks are (ALiBi)
//   table    the next input, i32 [B / n, n, Sj]: for image b = g n + i key and value j are those of image g n + table[g, i, j] (below 0:
//            g n, above n - 1: g n + n - 1), as beams share what they have in common; not with `segments`
//   pages    the next input, i32 [B, P], beside lengths: k and v are blocks of 16 rows, [blocks, heads of keys, 16, size], of all images
//            together; rows 16 p to 16 p + 15 of image b are block pages[b, p] (below 0: 0, beyond the last: the last). Sj is 16 P, but 0
//            where there are no blocks; neither with a table nor with `segments`
//   scales   the next two, f32 [heads of keys]: k and v are i8, and what counts is k * scales[g], v * scales'[g]
// With `integers` the last input is a scale, f32 [] or [1], and the output is what quantize makes of y (as it is stored) by
// it. Made by passes, whose node's body holds the nodes it stands for, and by plugins.
#pragma once

#include <algorithm>

#include "ir/attrs.h"
#include "ir/op_def.h"
#include "ops/cache_update/op.h"

namespace tw::ops::attention {

using cache_update::kPageRows;

// Rank 3, [B, S, W], or with rowsFirst [S, B, W]: element d of head h lies in column offset + h * headStride + d. Rank 4,
// [B, heads, S, size]: none of these is used. Keys and values have keyHeads() heads.
struct Operand
{
    int64_t offset = 0, headStride = 0;
    bool rowsFirst = false;

    void visit(ir::AttrVisitor& v, int firstNumber, char const* offsetName, char const* strideName)
    {
        v.field(firstNumber, offsetName, offset);
        v.field(firstNumber + 1, strideName, headStride);
    }
    int batchAxis(int rank) const { return rank == 3 && rowsFirst ? 1 : 0; }
    int rowsAxis(int rank) const { return rank == 4 ? 2 : rowsFirst ? 0 : 1; }
};

struct Attrs : ir::AttrsOf<Attrs>
{
    int64_t heads = 1, size = 1, valueSize = 1; // of a head in q and k, and in v
    double scale = 1, fill = 0;
    bool keepInverted = false;
    Operand q, k, v;
    int64_t headsPerKey = 1; // neighbours that read one head of keys and values
    bool integers = false;
    double scoreStep = 0, sumStep = 0, weightStep = 0;
    bool rowsFirst = false, segments = false;
    bool lengths = false, causal = false, sinks = false, slopes = false, table = false, scales = false;
    int64_t window = 0;
    double softcap = 0;
    bool pages = false;

    int64_t keyHeads() const { return heads / headsPerKey; }
    int batchAxis() const { return rowsFirst ? 1 : 0; } // of y
    int rowsAxis() const { return rowsFirst ? 0 : 1; }
    // Inputs from 3 up to here are masks; behind them stand lengths, sinks, slopes, table or pages, scales, begins and the scale, where there are any.
    int masksEnd(size_t inputs) const
    {
        return int(inputs) - integers - segments - 2 * scales - pages - table - slopes - sinks - lengths;
    }
    int lengthsInput(size_t inputs) const { return lengths ? masksEnd(inputs) : -1; }
    int sinksInput(size_t inputs) const { return sinks ? masksEnd(inputs) + lengths : -1; }
    int slopesInput(size_t inputs) const { return slopes ? masksEnd(inputs) + lengths + sinks : -1; }
    int tableInput(size_t inputs) const { return table ? masksEnd(inputs) + lengths + sinks + slopes : -1; }
    int pagesInput(size_t inputs) const { return pages ? masksEnd(inputs) + lengths + sinks + slopes + table : -1; }
    int scalesInput(size_t inputs) const
    {
        return scales ? masksEnd(inputs) + lengths + sinks + slopes + table + pages : -1;
    }
    int beginsInput(size_t inputs) const { return segments ? int(inputs) - integers - 1 : -1; }
    // Whether which keys a query sees depends on where it stands.
    bool byPosition() const { return causal || window > 0; }
    // Whether there is anything that attention of whole sequences does not have.
    bool ofDecoders() const { return lengths || byPosition() || sinks || slopes || table || scales || softcap > 0; }
    int scaleInput(size_t inputs) const { return integers ? int(inputs) - 1 : -1; }
    bool roundsScores() const { return scoreStep > 0 || sumStep > 0; }
    void visit(ir::AttrVisitor& visitor) override
    {
        visitor.field(1, "heads", heads);
        visitor.field(2, "size", size);
        visitor.field(3, "value_size", valueSize);
        visitor.field(4, "scale", scale);
        visitor.field(5, "fill", fill);
        visitor.field(6, "keep_inverted", keepInverted);
        q.visit(visitor, 7, "q_offset", "q_head_stride");
        k.visit(visitor, 9, "k_offset", "k_head_stride");
        v.visit(visitor, 11, "v_offset", "v_head_stride");
        visitor.field(13, "heads_per_key", headsPerKey);
        visitor.field(14, "integers", integers);
        visitor.field(15, "score_step", scoreStep);
        visitor.field(16, "sum_step", sumStep);
        visitor.field(17, "weight_step", weightStep);
        visitor.field(18, "rows_first", rowsFirst);
        visitor.field(19, "q_rows_first", q.rowsFirst);
        visitor.field(20, "k_rows_first", k.rowsFirst);
        visitor.field(21, "v_rows_first", v.rowsFirst);
        visitor.field(22, "segments", segments);
        visitor.field(23, "lengths", lengths);
        visitor.field(24, "causal", causal);
        visitor.field(25, "window", window);
        visitor.field(26, "softcap", softcap);
        visitor.field(27, "sinks", sinks);
        visitor.field(28, "slopes", slopes);
        visitor.field(29, "table", table);
        visitor.field(30, "scales", scales);
        visitor.field(31, "pages", pages);
    }
};

// What kernels can round by: they reckon in FP32.
inline constexpr double kLeastStep = 1e-30, kMostStep = 1e30;
inline bool isStep(double step)
{
    return step >= kLeastStep && step <= kMostStep;
}

// Where the elements of an operand lie, in elements.
struct Strides
{
    int64_t offset = 0, batch = 0, head = 0, row = 0;
};
// Of q, k or v of these dimensions, whose heads have `size` elements.
Strides operandStrides(Extents const& dims, Operand const& operand, int64_t heads, int64_t size);
// Sizes and strides at run time. A stride of mask and keep is 0 where they are broadcast; columns are neighbours.
struct Geometry
{
    int64_t batch = 0, rows = 0, columns = 0; // B, Si, Sj
    Strides q, k, v, mask, keep, y;
    int maskInput = -1, keepInput = -1, lengthsInput = -1, sinksInput = -1, slopesInput = -1, tableInput = -1,
        pagesInput = -1, scalesInput = -1, beginsInput = -1;
    int64_t sharing = 1; // images of a row of the table
    int64_t blocks = 0;  // that pages name; the batch strides of k and v are those of blocks then
};
Geometry geometryOf(Attrs const& attrs, std::span<TensorRef const> inputs);

// The elements of an input by its number in Geometry; null where there is none.
template <class T = void>
T const* elementsOf(std::span<TensorRef const> inputs, int i)
{
    return i >= 0 ? static_cast<T const*>(inputs[size_t(i)].data) : nullptr;
}

// Whose key an image sees: by a table that of another image, by pages that of a block.
struct Table
{
    int32_t const* entries = nullptr; // null: its own
    int64_t sharing = 1, columns = 0;
    int32_t const* pages = nullptr; // null: there are none
    int64_t blocks = 0;

    int64_t first(int64_t image) const { return entries ? image / sharing * sharing : image; }
    int32_t const* of(int64_t image) const { return entries ? entries + image * columns : nullptr; }
    int32_t const* pagesOf(int64_t image) const { return pages ? pages + image * (columns / kPageRows) : nullptr; }
    // Where key j lies: the image, or block, and its row there.
    int64_t image(int64_t image, int64_t j) const
    {
        if (pages)
            return std::clamp<int64_t>(pagesOf(image)[j / kPageRows], 0, blocks - 1);
        return entries ? first(image) + std::clamp<int64_t>(of(image)[j], 0, sharing - 1) : image;
    }
    int64_t row(int64_t j) const { return pages ? j % kPageRows : j; }
};
inline Table tableOf(Geometry const& g, std::span<TensorRef const> inputs)
{
    return {elementsOf<int32_t>(inputs, g.tableInput), g.sharing, g.columns, elementsOf<int32_t>(inputs, g.pagesInput),
            g.blocks};
}

// Keys that a row of queries sees, [from, to), and the position that it stands at.
struct Keys
{
    int64_t from = 0, to = 0, position = 0;
};
// Of row i of `rows` whose sequence has keys [from, to): rows of a segment count from the first of all.
inline Keys keysOf(Attrs const& a, int64_t from, int64_t to, int64_t rows, int64_t i)
{
    int64_t const at = a.segments ? i : to - rows + i;
    return {a.window > 0 ? std::max(from, at - a.window + 1) : from, a.causal ? std::min(to, at + 1) : to, at};
}
// Keys of an image; lengths: null where there are none.
inline int64_t lengthOf(int32_t const* lengths, int64_t image, int64_t columns)
{
    return lengths ? std::clamp<int64_t>(lengths[image], 0, columns) : columns;
}

// Calls f(from, to) for sequences in order, which are not empty and cover all rows.
template <class F>
void forEachSegment(TensorRef const& begins, int64_t rows, F const& f)
{
    int64_t from = 0;
    for (int64_t i = 0, count = begins.count(); i <= count; ++i) {
        int64_t const to = i < count ? std::min<int64_t>(begins.as<int32_t>()[i], rows) : rows;
        if (to > from) {
            f(from, to);
            from = to;
        }
    }
}

} // namespace tw::ops::attention
