// SPDX-License-Identifier: Apache-2.0
#include "ops/deformable_attention/op.h"

#include "tactic/domain.h"
#include "tactic/registry.h"

namespace tw::ops::deformable_attention {

namespace {

// Whether the dimensions may be the same.
bool mayAgree(ir::Dim const& a, ir::Dim const& b)
{
    return !a.isConst() || !b.isConst() || a.value() == b.value();
}

Result<void> infer(ir::InferContext& ctx)
{
    for (int i : {kShapes, kStarts})
        if (ctx.type(i) != DataType::kInt32)
            return ctx.error(ctx.describe(i) + " must be i32");
    for (int i : {kValue, kLocations, kWeights})
        if (!isFloating(ctx.type(i)) || ctx.type(i) != ctx.type(kValue))
            return ctx.error("value " + ctx.describe(kValue) + ", locations " + ctx.describe(kLocations) +
                             " and weights " + ctx.describe(kWeights) + " must be of one type, f32 or f16");
    ir::Shape const &value = ctx.shape(kValue), &shapes = ctx.shape(kShapes), &starts = ctx.shape(kStarts),
                    &at = ctx.shape(kLocations), &weights = ctx.shape(kWeights);
    if (value.size() != 4 || shapes.size() != 2 || starts.size() != 1 || at.size() != 6 || weights.size() != 5)
        return ctx.error("inputs must be value [N, S, M, D], shapes [L, 2], starts [L], locations [N, Q, M, L, P, 2], "
                         "weights [N, Q, M, L, P]");
    bool agree = mayAgree(at[5], 2) && mayAgree(shapes[1], 2) && mayAgree(value[0], at[0]) &&
                 mayAgree(value[2], at[2]) && mayAgree(shapes[0], at[3]) && mayAgree(starts[0], at[3]);
    for (size_t d = 0; d < 5; ++d)
        agree = agree && mayAgree(at[d], weights[d]);
    if (!agree)
        return ctx.error("value " + ctx.describe(kValue) + ", shapes " + ctx.describe(kShapes) + ", starts " +
                         ctx.describe(kStarts) + ", locations " + ctx.describe(kLocations) + " and weights " +
                         ctx.describe(kWeights) + " do not agree in N, M, L, Q or P");
    ctx.output(0, ctx.type(kValue), {value[0], at[1], value[2], value[3]});
    return {};
}

// Places in and around images; where images lie is the cases' matter.
void domain(ir::Node const&, int input, Domain& d)
{
    if (input == kLocations)
        d = Domain{-0.2, 1.2};
    if (input == kShapes || input == kStarts)
        d = Domain{0, 6};
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "deformable_attention",
    TW_OP_PARTS(Attrs),
    .inputs = {5, 5},
    .domain = domain,
};

} // namespace tw::ops::deformable_attention
