// SPDX-License-Identifier: Apache-2.0
#include "ops/assertion/op.h"

#include "tactic/domain.h"
#include "tactic/registry.h"

namespace tw::ops::assertion {

std::string Attrs::failure(int64_t i, int64_t count) const
{
    std::string const said = message.empty() ? "the asserted condition is false" : "'" + message + "' does not hold";
    return said + (count > 1 ? fmt::format(": element {} of the condition is false", i) : "");
}

namespace {

Result<void> infer(ir::InferContext& ctx)
{
    if (ctx.type(0) != DataType::kBool)
        return ctx.error("the condition " + ctx.describe(0) + " must be bool");
    if (ctx.rank(0) > 1)
        return ctx.error("the condition " + ctx.describe(0) + " must be a shape tensor of rank 0 or 1");
    auto const* x = ctx.content(0);
    for (size_t i = 0; x && i < x->size(); ++i)
        if ((*x)[i].is(0))
            return ctx.error(ctx.attrs<Attrs>().failure(int64_t(i), int64_t(x->size())));
    return {};
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "assertion",
    TW_OP_PARTS(Attrs),
    .isShapeInput = [](ir::Node const&, size_t i) { return i == 0; },
    .domain =
        [](ir::Node const&, int, Domain& d) {
            d = Domain{1, 1, true, false};
        },
};

} // namespace tw::ops::assertion
