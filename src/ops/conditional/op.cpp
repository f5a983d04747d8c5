// SPDX-License-Identifier: Apache-2.0
#include "ops/conditional/op.h"

#include <algorithm>

#include "tactic/regions.h"
#include "tactic/registry.h"

namespace tw::ops::conditional {

namespace {

using ir::Dim;
using ir::Shape;

constexpr char const* kNames[] = {"then", "else"};

// The dimension of an output, of which `only` >= 0 says that one region's counts.
Dim mergeDims(ir::InferContext& ctx, OuterDim const* d, int only)
{
    if (only >= 0)
        return d[only].known ? d[only].dim : ctx.freshSymbol(d[only].range);
    if (d[0].known && d[1].known && d[0].dim == d[1].dim)
        return d[0].dim;
    return ctx.freshSymbol({std::min(d[0].range.lo, d[1].range.lo), std::max(d[0].range.hi, d[1].range.hi)});
}

Result<void> infer(ir::InferContext& ctx)
{
    if (ctx.type(0) != DataType::kBool || !volume(ctx.shape(0)).is(1))
        return ctx.error("the condition " + ctx.describe(0) + " must be one bool");
    std::vector<RegionInput> const inputs = regionInputsFrom(ctx, 1);
    for (size_t r = 0; r < 2; ++r)
        TW_TRY(checkRegionInputs(ctx, r, inputs, kNames[r]));
    auto const &then = ctx.node().regions[0]->outputs, &otherwise = ctx.node().regions[1]->outputs;
    if (then.size() != otherwise.size())
        return ctx.error("'then' gives {} outputs, 'else' gives {}", then.size(), otherwise.size());
    // At run time the condition is known, and with it whose shapes hold.
    auto const* content = ctx.content(0);
    int const only = ctx.concrete() && content && content->at(0).isConst() ? (content->at(0).is(0) ? 1 : 0) : -1;
    for (size_t i = 0; i < then.size(); ++i) {
        ir::Value const* v[] = {then[i], otherwise[i]};
        if (v[0]->type != v[1]->type || v[0]->rank() != v[1]->rank())
            return ctx.error("output {} is {}{} in 'then' and {}{} in 'else'; type and rank must be equal", i,
                             nameOf(v[0]->type), str(v[0]->shape), nameOf(v[1]->type), str(v[1]->shape));
        Shape y;
        for (size_t d = 0; d < v[0]->shape.size(); ++d) {
            OuterDim const dims[] = {outerDim(ctx, 0, inputs, v[0]->shape[d]),
                                     outerDim(ctx, 1, inputs, v[1]->shape[d])};
            y.push_back(mergeDims(ctx, dims, only));
        }
        ctx.output(int(i), v[0]->type, std::move(y));
    }
    return {};
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "conditional",
    .makeAttrs = [] { return std::unique_ptr<ir::AttrsBase>(std::make_unique<ir::NoAttrs>()); },
    .infer = infer,
    .reference = reference,
    .inputs = {1, -1},
    .regionCount = 2,
    .regions = ir::RegionKind::kBranch,
    .computesShapes = true,
};

} // namespace tw::ops::conditional
