// SPDX-License-Identifier: Apache-2.0
#include "ops/non_zero/op.h"

#include <algorithm>

#include "tactic/domain.h"
#include "tactic/registry.h"

namespace tw::ops::non_zero {

namespace {

Result<void> infer(ir::InferContext& ctx)
{
    int64_t const most = std::clamp<int64_t>(ctx.range(volume(ctx.shape(0))).hi, 0, INT32_MAX);
    ctx.output(0, DataType::kInt32, {ctx.rank(0), ctx.freshSymbol({0, most})});
    return {};
}

void domain(ir::Node const&, int, Domain& d)
{
    d = Domain{-1, 1, true, false}; // about one zero in three
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "non_zero",
    TW_OP_PARTS(ir::NoAttrs),
    .domain = domain,
    .mixesFloats = true,
};

} // namespace tw::ops::non_zero
