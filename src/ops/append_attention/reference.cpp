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
        auto const run = [&](ir::OpDef const& op, ir::AttrsBase const& attrs) {
            ir::Node node;
            node.op = &op;
            node.name = ctx.node().name;
            node.attrs = attrs.clone();
            RefContext own(node, {inputs.begin(), inputs.end()}, {y});
            return op.reference(own);
        };
        switch (part) {
        case Part::kRotation:
            return run(rotary::def(), a.rotation());
        case Part::kKeyUpdate:
            return run(cache_update::def(), a.keyUpdate());
        case Part::kValueUpdate:
            return run(cache_update::def(), a.valueUpdate());
        default:
            return run(attention::def(), a.attending());
        }
    });
}

} // namespace tw::ops::append_attention
