// SPDX-License-Identifier: Apache-2.0
#include "ops/loop/op.h"

#include <algorithm>

#include "tactic/layer_facts.h"
#include "tactic/regions.h"
#include "tactic/registry.h"

namespace tw::ops::loop {

namespace {

using ir::Dim;
using ir::Range;
using ir::Shape;

Result<void> checkAttrs(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    // What is not given at the end, a count or lengths, is not there.
    int64_t const others = a.iteratorAxes.empty() ? 0 : 1 + int64_t(a.iteratorAxes.size());
    if (a.carried < 0 || a.carried > ctx.inputCount() - others)
        return ctx.error("{} carried values and {} iterated tensors are not possible with {} inputs", a.carried,
                         a.iteratorAxes.size(), ctx.inputCount());
    auto isFlags = [](std::vector<int64_t> const& flags, size_t count) {
        return flags.size() == count && std::all_of(flags.begin(), flags.end(), [](int64_t f) { return f >> 1 == 0; });
    };
    if (!isFlags(a.iteratorReverse, a.iteratorAxes.size()))
        return ctx.error("iterator_reverse needs 0 or 1 for each of iterator_axes");
    if (!isFlags(a.stackReverse, a.stackAxes.size()))
        return ctx.error("stack_reverse needs 0 or 1 for each of stack_axes");
    return {};
}

// Of a count or a length.
Result<void> checkNumber(ir::InferContext& ctx, size_t input, char const* what)
{
    int const i = int(input);
    if (ctx.has(i) && (ctx.type(i) != DataType::kInt32 || !volume(ctx.shape(i)).is(1)))
        return ctx.error(std::string(what) + " " + ctx.describe(i) + " must be one i32");
    return {};
}

Result<std::vector<RegionInput>> regionInputs(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    Layout const at(a);
    std::vector<RegionInput> list;
    for (size_t i = 0; at.inputOf(i) < size_t(ctx.inputCount()); ++i) {
        int const outer = int(at.inputOf(i));
        if (!ctx.has(outer))
            return ctx.error("input {} is missing", outer);
        bool const isSlice = i >= at.carried && i < at.firstRegionCapture();
        int64_t const axis = isSlice ? a.iteratorAxes[i - at.carried] : -1;
        if (isSlice && (axis < 0 || axis >= ctx.rank(outer)))
            return ctx.error("axis {} of an iterator is out of range for {} (allowed: 0..{})", axis,
                             ctx.describe(outer), ctx.rank(outer) - 1);
        list.push_back({outer, int(axis)});
    }
    return list;
}

Result<void> inferCarried(ir::InferContext& ctx, ir::Graph const& body)
{
    for (int i = 0; i < int(ctx.attrs<Attrs>().carried); ++i) {
        ir::Value const& out = *body.outputs[size_t(i)];
        Shape const& in = ctx.shape(i);
        bool same = out.type == ctx.type(i) && out.rank() == int(in.size());
        for (size_t d = 0; same && d < in.size(); ++d)
            same = !out.shape[d].isConst() || !in[d].isConst() || out.shape[d] == in[d];
        if (!same)
            return ctx.error(
                "carried value {} is {}{} before an iteration and {}{} after it; type and shape must not change", i,
                nameOf(ctx.type(i)), str(in), nameOf(out.type), str(out.shape));
        ctx.output(i, ctx.type(i), in);
    }
    return {};
}

// The only element of a count or length, where it is known.
Dim const* numberAt(ir::InferContext const& ctx, size_t input)
{
    auto const* content = ctx.content(int(input));
    return content && content->size() == 1 ? &content->front() : nullptr;
}

// How many trips there may be, as far as that is known without the condition.
struct Trips
{
    bool known = false; // `dim` of them exactly
    Dim dim;
    int64_t most = INT64_MAX;
};

Trips tripsOf(ir::InferContext const& ctx)
{
    Layout const at(ctx.attrs<Attrs>());
    bool const counts = isAlwaysTrue(*ctx.node().regions[0]);
    Trips trips;
    if (Dim const* count = numberAt(ctx, at.count())) {
        trips.dim = count->isConst()            ? Dim(std::max<int64_t>(count->value(), 0))
                    : ctx.range(*count).lo >= 0 ? *count
                                                : max(*count, Dim(0));
        trips.known = counts;
        trips.most = std::max<int64_t>(ctx.range(trips.dim).hi, 0);
    }
    for (size_t s = 0; s < at.iterated; ++s) { // no trip without a slice
        int const i = int(at.iteratedAt(s));
        Dim const& extent = ctx.shape(i)[size_t(ctx.attrs<Attrs>().iteratorAxes[s])];
        trips.most = std::min(trips.most, std::max<int64_t>(ctx.range(extent).hi, 0));
    }
    return trips;
}

Result<Dim> lengthOf(ir::InferContext& ctx, size_t input, Trips const& trips)
{
    if (!ctx.has(int(input)))
        return trips.known ? trips.dim : ctx.freshSymbol({0, trips.most});
    Dim const* length = numberAt(ctx, input);
    if (!length)
        return ctx.freshSymbol({0, INT64_MAX});
    if (length->isConst() && length->value() < 0)
        return ctx.error("the length {} is {}, below 0", ctx.describe(int(input)), length->value());
    return *length;
}

Result<void> inferStacks(ir::InferContext& ctx, ir::Graph const& body, std::vector<RegionInput> const& inputs)
{
    auto const& a = ctx.attrs<Attrs>();
    Layout const at(a);
    Trips const trips = tripsOf(ctx);
    for (size_t k = 0; k < at.stacked; ++k) {
        ir::Value const& part = *body.outputs[at.carried + k];
        int64_t const axis = a.stackAxes[k];
        if (axis < 0 || axis > part.rank() || part.rank() >= kMaxRank)
            return ctx.error(
                "axis {} is out of range for the stack of '{}' of rank {} (allowed: 0..{}, rank {} at most)", axis,
                part.name, part.rank(), part.rank(), kMaxRank);
        Shape y;
        for (Dim const& d : part.shape) {
            OuterDim const outer = outerDim(ctx, 1, inputs, d);
            y.push_back(outer.known ? outer.dim : ctx.freshSymbol(outer.range));
        }
        TW_ASSIGN(Dim const length, lengthOf(ctx, at.lengthAt(k), trips));
        y.insert(y.begin() + axis, length);
        ctx.output(int(at.carried + k), part.type, std::move(y));
    }
    return {};
}

Result<void> infer(ir::InferContext& ctx)
{
    TW_TRY(checkAttrs(ctx));
    Layout const at(ctx.attrs<Attrs>());
    TW_TRY(checkNumber(ctx, at.count(), "the count"));
    for (size_t k = 0; k < at.stacked; ++k)
        TW_TRY(checkNumber(ctx, at.lengthAt(k), "the length"));
    TW_ASSIGN(std::vector<RegionInput> const inputs, regionInputs(ctx));
    TW_TRY(checkRegionInputs(ctx, 0, inputs, "condition"));
    TW_TRY(checkRegionInputs(ctx, 1, inputs, "body"));
    ir::Graph const &condition = *ctx.node().regions[0], &body = *ctx.node().regions[1];
    if (condition.outputs.size() != 1 || condition.outputs[0]->type != DataType::kBool ||
        !volume(condition.outputs[0]->shape).is(1))
        return ctx.error("the region 'condition' must give one bool");
    if (body.outputs.size() != at.carried + at.stacked)
        return ctx.error("the region 'body' gives {} values, {} are carried and {} stacked", body.outputs.size(),
                         at.carried, at.stacked);
    TW_TRY(inferCarried(ctx, body));
    return inferStacks(ctx, body, inputs);
}

// Lengths decide shapes; a count that shape arithmetic knows stays with it on the host, so that nobody waits for it.
bool isShapeInput(ir::Node const& node, size_t i)
{
    Layout const at(node.attrsAs<Attrs>());
    if (i != at.count())
        return i >= at.lengthAt(0) && i < at.firstCapture();
    ir::Value const* count = i < node.inputs.size() ? node.inputs[i] : nullptr;
    return count && (count->content || count->isConstant() || count->host);
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "loop",
    .makeAttrs = [] { return std::unique_ptr<ir::AttrsBase>(std::make_unique<Attrs>()); },
    .infer = infer,
    .reference = reference,
    .inputs = {0, -1},
    .regionCount = 2,
    .isShapeInput = isShapeInput,
    .inspect = [](LayerFacts& facts) { facts.kind("Loop"); },
    .regions = ir::RegionKind::kLoop,
    .firstCapture = [](ir::Node const& n) { return Layout(n.attrsAs<Attrs>()).firstRegionCapture(); },
};

} // namespace tw::ops::loop
