// SPDX-License-Identifier: Apache-2.0
#include "ops/concatenation/op.h"

#include "base/format.h"
#include "ir/signs.h"
#include "tactic/registry.h"

namespace tw::ops::concatenation {

namespace {

Result<void> infer(ir::InferContext& ctx)
{
    int const axis = ctx.attrs<Attrs>().axis;
    for (int i = 0; i < ctx.inputCount(); ++i)
        if (!ctx.has(i))
            return ctx.error("input {} is missing", i);
    if (ctx.rank(0) == 0)
        return ctx.error(ctx.describe(0) + " is a scalar; give it a dimension with a shuffle layer first");
    if (axis < 0 || axis >= ctx.rank(0))
        return ctx.error("axis {} is out of range for {} (allowed: 0..{})", axis, ctx.describe(0), ctx.rank(0) - 1);
    ir::Shape y = ctx.shape(0);
    for (int i = 1; i < ctx.inputCount(); ++i) {
        if (ctx.type(i) != ctx.type(0))
            return ctx.error(ctx.describe(0) + " and " + ctx.describe(i) +
                             " must have one type; convert one with an identity layer");
        ir::Shape const& x = ctx.shape(i);
        if (x.size() != y.size())
            return ctx.error(ctx.describe(0) + " and " + ctx.describe(i) + " must have equal rank");
        for (int d = 0; d < int(x.size()); ++d) {
            ir::Dim& out = y[size_t(d)];
            ir::Dim const& in = x[size_t(d)];
            if (d == axis)
                out = out + in;
            else if (out.isConst() && in.isConst() && !(out == in))
                return ctx.error("dimension {} of {} must be {} as in the inputs before it (only axis {} may differ)",
                                 d, ctx.describe(i), out.str(), axis);
            else if (in.isConst())
                out = in; // equal, or the check at run time refuses
        }
    }
    bool known = y.size() == 1;
    std::vector<ir::Dim> content;
    for (int i = 0; i < ctx.inputCount() && known; ++i) {
        auto const* c = ctx.content(i);
        known = c && int64_t(content.size() + c->size()) <= ir::kMaxContent;
        if (known)
            content.insert(content.end(), c->begin(), c->end());
    }
    ctx.output(0, ctx.type(0), std::move(y));
    if (known)
        ctx.outputContent(0, std::move(content));
    return {};
}

// Linear: nothing but dimensions of size 1 before the axis, so the inputs lie one after the other. By pixels: whole
// cache lines of each pixel, or whole vectors.
std::vector<ir::Alias> aliases(ir::Node const& node, std::span<TensorRef const> in, std::span<TensorRef const> out)
{
    int const axis = node.attrsAs<Attrs>().axis;
    bool const isVectors = isPixelRows(out[0].format, out[0].dims.rank);
    bool const pixels = out[0].format == Format::kChannelsLast || isVectors;
    for (TensorRef const& x : in) {
        int64_t const unit = isVectors ? vectorOf(x.format) : kCacheLine / sizeOf(x.type);
        if (x.format != out[0].format || (pixels && x.dims[1] % unit != 0))
            return {};
    }
    if (!pixels && out[0].format != Format::kLinear)
        return {};
    if (pixels ? axis != 1 || out[0].count() == 0 : out[0].dims.volume(0, axis) != 1)
        return {};
    std::vector<ir::Alias> list;
    int64_t offset = 0;
    for (size_t i = 0; i < in.size(); ++i) {
        list.push_back(ir::Alias{false, int(i), offset});
        offset += pixels ? in[i].dims[1] : in[i].count();
    }
    return list;
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "concatenation",
    TW_OP_PARTS(Attrs),
    .inputs = {1, -1},
    .isNonNegative = ir::ofAllInputs,
    .aliases = aliases,
    .isCheap = true,
    .computesShapes = true,
};

} // namespace tw::ops::concatenation
