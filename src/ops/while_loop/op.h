// SPDX-License-Identifier: Apache-2.0
// c = initial; while (condition(c, captures)) c = body(c, captures); y = c
//   inputs: the `carried` initial values, then captures...; regions: 0 condition (gives one bool), 1 body (gives the
//   next carried values); both take carried values and captures in order. Outputs: the carried values, the initial ones
//   after zero trips. A carried value keeps its type and shape.
#pragma once

#include "ir/attrs.h"
#include "ir/op_def.h"

namespace tw::ops::while_loop {

struct Attrs : ir::AttrsOf<Attrs>
{
    int64_t carried = 0; // how many of the inputs change from trip to trip

    void visit(ir::AttrVisitor& v) override { v.field(1, "carried", carried); }
};

Result<void> reference(RefContext& ctx);

} // namespace tw::ops::while_loop
