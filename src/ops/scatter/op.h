// SPDX-License-Identifier: Apache-2.0
// y is x, shape [x_0..x_{r-1}], with updates u written where indices j say.
//   element  j and u of one shape, rank r, no dimension but `axis` larger than that of x:
//            y[c with c_axis = j[c]] = u[c] for every c of u.
//   nd       j [n.., k], 1 <= k <= r; u [n.., x_k..x_{r-1}]: y[j[t, 0], ..., j[t, k-1], ...] = u[t, ...].
// A negative index counts from the end. What points outside is not written. Of several updates of one element the last
// one counts, in row-major order of u; 8.5 leaves this open.
#pragma once

#include "base/extents.h"
#include "ir/attrs.h"
#include "ir/op_def.h"

namespace tw::ops::scatter {

enum class Mode : int32_t // same numbers as nvinfer1::ScatterMode
{
    kElement = 0,
    kNd = 1,
};

struct Attrs : ir::AttrsOf<Attrs>
{
    Mode mode = Mode::kElement;
    int64_t axis = 0; // without effect for nd

    void visit(ir::AttrVisitor& v) override
    {
        v.field(1, "mode", mode);
        v.field(2, "axis", axis);
    }
};

Result<void> reference(RefContext& ctx);
std::span<Tactic const* const> cpuTactics();
std::span<Tactic const* const> cudaTactics();

} // namespace tw::ops::scatter
