// SPDX-License-Identifier: Apache-2.0
#include "ops/padding/op.h"

#include "ir/signs.h"
#include "tactic/layer_facts.h"
#include "tactic/registry.h"

namespace tw::ops::padding {

namespace {

constexpr int64_t kLimit = INT32_MAX;

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    if (a.pre.size() != 2 || a.post.size() != 2)
        return ctx.error("pre- and post-padding need 2 entries, for the two innermost dimensions");
    if (ctx.rank(0) < 3)
        return ctx.error(ctx.describe(0) + " must have at least 3 dimensions");
    ir::Shape y = ctx.shape(0);
    for (size_t i = 0; i < 2; ++i) {
        for (int64_t v : {a.pre[i], a.post[i]})
            if (v < -kLimit || v > kLimit)
                return ctx.error("padding {} is out of range (allowed: -2147483647..2147483647)", v);
        ir::Dim& d = y[y.size() - 2 + i];
        ir::Dim const out = d + (a.pre[i] + a.post[i]);
        if (out.isConst() && out.value() < 0)
            return ctx.error("padding {}, {} crops more than the {} elements of dimension {} of {}", a.pre[i],
                             a.post[i], d.str(), y.size() - 2 + i, ctx.describe(0));
        d = out;
    }
    ctx.output(0, ctx.type(0), std::move(y));
    return {};
}

void inspect(LayerFacts& facts)
{
    auto const& a = facts.attrs<Attrs>();
    facts.kind("Padding");
    facts.add("PrePadding", a.pre);
    facts.add("PostPadding", a.post);
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "padding",
    TW_OP_PARTS(Attrs),
    .isNonNegative = ir::ofFirstInput,
    .inspect = inspect,
    .isCheap = true,
};

} // namespace tw::ops::padding
