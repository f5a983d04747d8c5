// SPDX-License-Identifier: Apache-2.0
// y is x, shape [x_0..x_{r-1}], with updates u written where indices j say.
//   element  j and u of one shape, rank r, no dimension but `axis` larger than that of x:
//            y[c with c_axis = j[c]] = u[c] for every c of u.
//   nd       j [n.., k], 1 <= k <= r; u [n.., x_k..x_{r-1}]: y[j[t, 0], ..., j[t, k-1], ...] = u[t, ...].
// A negative index counts from the end. What points outside is not written. Of several updates of one element the last
// one counts, in row-major order of u; 8.5 leaves this open. With a reduction (f32, f16, i32) all of them count: they are
// added to the element (integers wrap), multiplied with it, or the smallest or largest remains, a NaN before any number.
// x and y may lie at one address: then the updates are all that is written.
#pragma once

#include "base/extents.h"
#include "ir/attrs.h"

namespace tw::ops::scatter {

enum class Mode : int32_t // same numbers as nvinfer1::ScatterMode
{
    kElement = 0,
    kNd = 1,
};

enum class Reduction : int32_t
{
    kNone = 0,
    kAdd = 1,
    kMul = 2,
    kMin = 3,
    kMax = 4,
};

struct Attrs : ir::AttrsOf<Attrs>
{
    Mode mode = Mode::kElement;
    int64_t axis = 0; // without effect for nd
    Reduction reduction = Reduction::kNone;

    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "mode", mode);
        v.field(2, "axis", axis);
        v.field(3, "reduction", reduction);
    }
};

// How many tuples of indices there are, and the elements behind each.
struct Tuples
{
    int64_t count = 0, block = 1;
};
Tuples tuplesOf(Attrs const& a, Extents const& x, Extents const& indices);

} // namespace tw::ops::scatter
