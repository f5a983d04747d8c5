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
// With `integers` the last input is a scale, f32 [] or [1], and the output is what quantize makes of y (as it is stored) by
// it. Made by passes, whose node's body holds the nodes it stands for, and by plugins.
#pragma once

#include <algorithm>

#include "ir/attrs.h"
#include "ir/op_def.h"

namespace tw::ops::attention {

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

    int64_t keyHeads() const { return heads / headsPerKey; }
    int batchAxis() const { return rowsFirst ? 1 : 0; } // of y
    int rowsAxis() const { return rowsFirst ? 0 : 1; }
    // Inputs from 3 up to here are masks; behind them stand the begins and the scale, where there are any.
    int masksEnd(size_t inputs) const { return int(inputs) - integers - segments; }
    int beginsInput(size_t inputs) const { return segments ? masksEnd(inputs) : -1; }
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
// Sizes and strides at run time. A stride of mask and keep is 0 where they are broadcast; columns are neighbours.
struct Geometry
{
    int64_t batch = 0, rows = 0, columns = 0; // B, Si, Sj
    Strides q, k, v, mask, keep, y;
    int maskInput = -1, keepInput = -1, beginsInput = -1;
};
Geometry geometryOf(Attrs const& attrs, std::span<TensorRef const> inputs);

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
