// SPDX-License-Identifier: Apache-2.0
#include "ops/rotary/op.h"

#include "tactic/layer_facts.h"
#include "tactic/registry.h"

namespace tw::ops::rotary {

namespace {

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    ir::Shape x = ctx.shape(0);
    if (!isFloating(ctx.type(0)) || x.empty())
        return ctx.error(ctx.describe(0) + " must be f32 or f16 and have a dimension");
    if (a.heads < 0 || a.offset < 0 || a.rowSize < 0 || a.heads > INT32_MAX || a.rowSize > INT32_MAX ||
        a.offset > INT32_MAX)
        return ctx.error("heads {} of {} from column {} on are out of range", a.heads, a.rowSize, a.offset);
    if (a.isPacked()) {
        if (x.size() != 3 || !x[2].isConst() || a.offset + a.heads * a.rowSize > x[2].value())
            return ctx.error("{} has no {} heads of {} elements from column {} on", ctx.describe(0), a.heads, a.rowSize,
                             a.offset);
        x = {x[0], x[1], a.heads, a.rowSize};
    }
    if (a.size < 2 || a.size % 2 != 0 || (x.back().isConst() && a.size > x.back().value()))
        return ctx.error("size {} must be even, at least 2 and at most the last dimension of {}", a.size,
                         ctx.describe(0));
    for (int i = 1; i < 3; ++i) {
        ir::Shape const& w = ctx.shape(i);
        bool fits = ctx.type(i) == ctx.type(0) && w.size() == x.size() &&
                    (!w.back().isConst() || w.back().is(a.size) || w.back().is(a.size / 2));
        for (size_t d = 0; fits && d + 1 < x.size(); ++d)
            fits = w[d].is(1) || w[d] == x[d] || !(w[d].isConst() && x[d].isConst());
        if (!fits)
            return ctx.error("{} must have the type and rank of {}, 1 or the same in each dimension, and {} or half of "
                             "it in the last",
                             ctx.describe(i), ctx.describe(0), a.size);
    }
    ctx.output(0, ctx.type(0), x);
    return {};
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "rotary",
    TW_OP_PARTS(Attrs),
    .inputs = {3, 3},
    // 8.5 gives such a subgraph to another compiler, whose layers have no kind of their own.
    .inspect = [](LayerFacts& facts) { facts.kind("Myelin", ""); },
};

} // namespace tw::ops::rotary
