// SPDX-License-Identifier: Apache-2.0
#include "ops/reduce/op.h"

#include "tactic/domain.h"
#include "tactic/layer_facts.h"
#include "tactic/registry.h"

namespace tw::ops::reduce {

namespace {

// Elements of y as expressions, from those of x. x has a static shape.
std::vector<ir::Dim> reduceContent(Attrs const& a, Extents const& x, std::vector<ir::Dim> const& from)
{
    Extents kept = x;
    for (int i = 0; i < x.rank; ++i)
        if (a.has(i))
            kept[i] = 1;
    int64_t const first = a.kind == Kind::kProd  ? 1
                          : a.kind == Kind::kMax ? INT32_MIN
                          : a.kind == Kind::kMin ? INT32_MAX
                                                 : 0;
    std::vector<ir::Dim> to(size_t(kept.volume()), ir::Dim(first));
    std::vector<bool> begun(to.size(), false);
    Extents const strides = stridesOf(kept, true); // 0 along reduced axes
    Counter at(x);
    for (ir::Dim const& v : from) {
        size_t const k = size_t(at.offset(strides));
        ir::Dim& d = to[k];
        if (!begun[k])
            d = v; // keeps the neutral element out of expressions
        else
            d = a.kind == Kind::kSum    ? d + v
                : a.kind == Kind::kProd ? d * v
                : a.kind == Kind::kMax  ? max(d, v)
                                        : min(d, v);
        begun[k] = true;
        at.next();
    }
    return to;
}

Result<void> checkFused(ir::InferContext& ctx, Attrs const& a)
{
    if (int(a.before) < 0 || a.before > Before::kExp || int(a.after) < 0 || a.after > After::kLog)
        return ctx.error("reduce has no function {} in front (allowed: 0..3) or {} behind (allowed: 0..2)",
                         int(a.before), int(a.after));
    if (a.isLogSumExp() && (a.kind != Kind::kSum || a.after != After::kLog))
        return ctx.error("reduce takes exponentials in front of a sum with a logarithm behind it only");
    if (!a.isBare() && !isFloating(ctx.type(0)))
        return ctx.error(ctx.describe(0) + " must be f32 or f16, for reduce has a function in front or behind");
    return {};
}

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    int const kind = int(a.kind), rank = ctx.rank(0);
    if (kind < 0 || kind > int(Kind::kAvg))
        return ctx.error("reduce operation {} does not exist (allowed: 0..4)", kind);
    DataType const t = ctx.type(0);
    if (!isReal(t) && t != DataType::kInt32)
        return ctx.error(ctx.describe(0) + " must be f32, f16, i8 or i32");
    TW_TRY(checkFused(ctx, a));
    if (a.axes < 0 || a.axes >> rank != 0)
        return ctx.error("axis mask {} names axes beyond {} of rank {}", a.axes, ctx.describe(0), rank);
    ir::Shape y;
    for (int i = 0; i < rank; ++i)
        if (!a.has(i))
            y.push_back(ctx.shape(0)[i]);
        else if (a.keepDims)
            y.emplace_back(1);
    ctx.output(0, t, std::move(y));
    auto const* content = ctx.content(0);
    if (content && t == DataType::kInt32 && a.kind != Kind::kAvg && isStatic(ctx.shape(0))) {
        Extents const x = extentsOf(ctx.shape(0));
        Extents kept = x;
        for (int i = 0; i < rank; ++i)
            if (a.has(i))
                kept[i] = 1;
        if (x.volume() == int64_t(content->size()) && kept.volume() <= ir::kMaxContent)
            ctx.outputContent(0, reduceContent(a, x, *content));
    }
    return {};
}

void domain(ir::Node const& node, int, Domain& d)
{
    auto const& a = node.attrsAs<Attrs>();
    if (!isFloating(node.inputs[0]->type))
        return;
    // A product that neither vanishes nor overflows; roots and logarithms of positive numbers.
    if (a.kind == Kind::kProd || (a.after != After::kNothing && a.before == Before::kNothing)) {
        d.lo = 0.5;
        d.hi = 1.5;
    } else if (a.isLogSumExp()) {
        d.lo = -8; // sums that a few elements decide
        d.hi = 8;
    }
}

// Sums of random numbers may nearly vanish, logarithms of what is nearly 1 do: the errors of what they come from stay.
Tolerance tolerance(ir::Node const& node, DataType type)
{
    auto const& a = node.attrsAs<Attrs>();
    Tolerance t = Tolerance::forType(type);
    t.scale = a.after == After::kLog || a.kind == Kind::kSum ? 1 : a.kind == Kind::kAvg ? 0.01 : 0;
    return t;
}

void inspect(LayerFacts& facts)
{
    auto const& a = facts.attrs<Attrs>();
    constexpr char const* kOperations[] = {"kSUM", "kPROD", "kMAX", "kMIN", "kAVG"};
    facts.kind("Reduce");
    facts.add("Operation", kOperations[int(a.kind)]);
    facts.add("Axes", a.axes);
    facts.addFlag("KeepDimensions", a.keepDims);
    if (a.isBare())
        return;
    constexpr char const* kBefore[] = {"", "kABS", "kSQUARE", "kEXP"};
    constexpr char const* kAfter[] = {"", "kSQRT", "kLOG"};
    facts.add("Before", kBefore[int(a.before)]);
    facts.add("After", kAfter[int(a.after)]);
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "reduce",
    TW_OP_PARTS(Attrs),
    .domain = domain,
    .tolerance = tolerance,
    .inspect = inspect,
    .isCheap = true,
    .computesShapes = true,
};

} // namespace tw::ops::reduce
