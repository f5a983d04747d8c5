// SPDX-License-Identifier: Apache-2.0
#include "tactic/reference.h"

#include "ops/append_attention/op.h"
#include "tactic/registry.h"

namespace tw::ops::append_attention {

// It is what its parts are, one behind the other.
Result<void> reference(RefContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    std::vector<TensorRef> in, out;
    for (int i = 0; i < ctx.inputCount(); ++i)
        in.push_back(ctx.in(i));
    for (int i = 0; i < ctx.outputCount(); ++i)
        out.push_back(ctx.out(i));
    Tensor turned(in[kQueries].type,
                  a.isTurned() ? Extents{in[kQueries].dims[0], in[kQueries].dims[1], a.turnedWidth()} : Extents{0});
    return forParts(a, in, out, turned.data(), [&](Part part, auto const& inputs, TensorRef const& y) {
        ir::Node node = nodeOf(a, part);
        node.name = ctx.node().name;
        RefContext own(node, {inputs.begin(), inputs.end()}, {y});
        return node.op->reference(own);
    });
}

} // namespace tw::ops::append_attention
