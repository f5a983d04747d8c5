// SPDX-License-Identifier: Apache-2.0
#include "ops/fill/op.h"

#include <cmath>

#include "tactic/registry.h"

namespace tw::ops::fill {

namespace {

using ir::Dim;

// The output's shape, from input 0 or the attribute.
Result<ir::Shape> shapeOf(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    ir::Shape y;
    if (ctx.has(0)) {
        if (ctx.type(0) != DataType::kInt32 || ctx.rank(0) != 1)
            return ctx.error("the dimensions, " + ctx.describe(0) + ", must be a 1-D i32 tensor");
        if (!ctx.shape(0)[0].isConst())
            return ctx.error("the length of the dimensions, " + ctx.describe(0) +
                             ", must be known: it is the output's rank");
        int64_t const rank = ctx.shape(0)[0].value();
        if (rank > kMaxRank)
            return ctx.error("the dimensions, {}, would give an output of rank {}, the limit is {}", ctx.describe(0),
                             rank, kMaxRank);
        auto const* content = ctx.content(0);
        if (content && int64_t(content->size()) == rank)
            y = *content;
        else if (ctx.concrete())
            return ctx.error("the dimensions, " + ctx.describe(0) + ", are not known");
        else
            for (int64_t i = 0; i < rank; ++i)
                y.push_back(ctx.freshSymbol(ir::Range{0, INT32_MAX}));
    } else {
        if (a.dims.size() > size_t(kMaxRank))
            return ctx.error("{} dimensions are given, the limit is {}", a.dims.size(), kMaxRank);
        y.assign(a.dims.begin(), a.dims.end());
    }
    for (size_t i = 0; i < y.size(); ++i)
        if (y[i].isConst() && y[i].value() < 0)
            return ctx.error("dimension {} is {}; it must not be negative", i, y[i].str());
    return y;
}

// Elements of a 1-D or scalar i32 range, where start and steps are known.
void inferContent(ir::InferContext& ctx, ir::Shape const& y)
{
    auto const& a = ctx.attrs<Attrs>();
    if (!ir::isStatic(y))
        return;
    int64_t count = 1;
    for (Dim const& d : y)
        count = ir::mulSat(count, d.value());
    std::vector<Dim> out;
    auto const *alpha = ctx.content(1), *beta = ctx.content(2);
    if (count > ir::kMaxContent || ctx.has(1) != (alpha && alpha->size() == 1) ||
        ctx.has(2) != (beta && beta->size() == std::max<size_t>(1, y.size())))
        return;
    if (!ctx.has(2) && (std::fabs(a.alpha) > INT32_MAX || std::fabs(a.beta) > INT32_MAX))
        return;
    Extents const e = ir::extentsOf(y);
    Counter at(e);
    for (int64_t i = 0; i < count; ++i, at.next()) {
        Dim v = alpha ? (*alpha)[0] : Dim(int64_t(a.alpha));
        for (int d = 0; d < e.rank; ++d)
            v = v + Dim(at.at[d]) * (beta ? (*beta)[size_t(d)] : Dim(int64_t(a.beta)));
        if (v.isConst())
            v = Dim(int64_t(int32_t(uint32_t(uint64_t(v.value()))))); // as an i32 store does
        out.push_back(std::move(v));
    }
    ctx.outputContent(0, std::move(out));
}

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    if (int(a.operation) < 0 || int(a.operation) > 2)
        return ctx.error("there is no fill operation {} (allowed: 0..2)", int(a.operation));
    if (ctx.has(1) != ctx.has(2))
        return ctx.error("inputs 1 (alpha) and 2 (beta) must be given together");
    TW_ASSIGN(ir::Shape y, shapeOf(ctx));
    bool const isLinspace = a.operation == Operation::kLinspace;
    DataType type = a.outputType;
    if (ctx.has(1)) {
        type = ctx.type(1);
        if (ctx.type(2) != type)
            return ctx.error("alpha, " + ctx.describe(1) + ", and beta, " + ctx.describe(2) + ", must have one type");
        if (Dim const n = ir::volume(ctx.shape(1)); ctx.rank(1) > 1 || (n.isConst() && !n.is(1)))
            return ctx.error("alpha, " + ctx.describe(1) + ", must be a scalar");
        Dim const steps = ir::volume(ctx.shape(2));
        int64_t const want = isLinspace && ctx.rank(2) == 1 ? int64_t(y.size()) : 1;
        if (ctx.rank(2) > 1 || (steps.isConst() && !steps.is(want)))
            return ctx.error("beta, " + ctx.describe(2) + ", must " +
                             (isLinspace ? fmt::format("be 1-D with one step for each of the {} dimensions", y.size())
                                         : std::string("be a scalar")));
        if (isLinspace && ctx.rank(2) == 0 && y.size() != 1)
            return ctx.error("beta, {}, must be 1-D with one step for each of the {} dimensions", ctx.describe(2),
                             y.size());
    } else {
        if (!std::isfinite(a.alpha) || !std::isfinite(a.beta))
            return ctx.error("alpha {} and beta {} must be finite", a.alpha, a.beta);
        if (isLinspace && y.size() != 1)
            return ctx.error("linspace with one alpha and beta makes 1-D tensors, this one has rank {}; give one step "
                             "for each dimension as input 2",
                             y.size());
    }
    if (!isFloating(type) && !(isLinspace && type == DataType::kInt32))
        return ctx.error(std::string(isLinspace ? "linspace makes f32, f16 or i32" : "random values are f32 or f16") +
                         ", not " + nameOf(type));
    ctx.output(0, type, y);
    if (isLinspace && type == DataType::kInt32)
        inferContent(ctx, y);
    return {};
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "fill",
    TW_OP_PARTS(Attrs),
    .inputs = {0, 3},
    .isShapeInput = [](ir::Node const&, size_t i) { return i == 0; },
    .stateful = [](ir::Node const& n) { return n.attrsAs<Attrs>().operation != Operation::kLinspace; },
    .computesShapes = true,
};

} // namespace tw::ops::fill
