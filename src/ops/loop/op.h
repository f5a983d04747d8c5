// SPDX-License-Identifier: Apache-2.0
// last..., stacked... = loop(initial x C, count?, iterated x S, length? x K, captures...)
//   c = initial; for (i = 0; i < count and condition(c, x[i], captures); ++i) (c, y[i]) = body(c, x[i], captures)
// Inputs: C initial values; how many trips at most (i32, one element; none: no such limit); S tensors, of which trip i
// sees slice i along an axis, or i-th from the end; K lengths of stacked outputs (i32, one element; none: the number of
// trips); captures. Regions: 0 condition (one bool), 1 body (C next values, K values to stack), each of (C carried
// values, S slices without the axis, captures). A loop that only a count ends has a condition that is a constant true.
// Outputs: the carried values after the last trip (the initial ones after none), then one stack for each of K: a new
// axis of `length`, trip i at i or at length - 1 - i, zeros where no trip writes. A count below 0 is 0; a length below
// the number of trips, and a trip without a slice, are errors. The condition of the trip that is not taken sees the last
// slice, where there is none of its own. A carried value keeps type and shape.
#pragma once

#include "ir/attrs.h"
#include "ir/op_def.h"

namespace tw::ops::loop {

struct Attrs : ir::AttrsOf<Attrs>
{
    int64_t carried = 0; // C
    std::vector<int64_t> iteratorAxes, iteratorReverse, stackAxes, stackReverse;

    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "carried", carried);
        v.field(2, "iterator_axes", iteratorAxes);
        v.field(3, "iterator_reverse", iteratorReverse);
        v.field(4, "stack_axes", stackAxes);
        v.field(5, "stack_reverse", stackReverse);
    }
};

// Where things stand among the inputs of the node and of its regions, and the outputs of both.
struct Layout
{
    size_t carried, iterated, stacked;

    explicit Layout(Attrs const& a)
        : carried(size_t(a.carried)), iterated(a.iteratorAxes.size()), stacked(a.stackAxes.size())
    {}
    size_t count() const { return carried; }
    size_t iteratedAt(size_t s) const { return carried + 1 + s; }
    size_t lengthAt(size_t k) const { return carried + 1 + iterated + k; }
    size_t firstCapture() const { return carried + 1 + iterated + stacked; }
    size_t firstRegionCapture() const { return carried + iterated; }
    // The node's input behind input i of a region.
    size_t inputOf(size_t i) const { return i < carried ? i : i < firstRegionCapture() ? i + 1 : i + 1 + stacked; }
};

// A condition that is true whatever it sees: nobody has to ask.
inline bool isAlwaysTrue(ir::Graph const& condition)
{
    ir::Value const& v = *condition.outputs[0];
    return v.isConstant() && v.constant->data->sizeBytes() > 0 && *v.constant->data->as<uint8_t>() != 0;
}

} // namespace tw::ops::loop
