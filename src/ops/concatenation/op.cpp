// SPDX-License-Identifier: Apache-2.0
#include "ops/concatenation/op.h"

#include "tactic/cases.h"
#include "tactic/registry.h"

namespace tw::ops::concatenation {

namespace {

Result<void> infer(ir::InferContext& ctx)
{
    int const axis = ctx.attrs<Attrs>().axis;
    for (int i = 0; i < ctx.inputCount(); ++i)
        if (!ctx.has(i))
            return ctx.error("input " + std::to_string(i) + " is missing");
    if (ctx.rank(0) == 0)
        return ctx.error(ctx.describe(0) + " is a scalar; give it a dimension with a shuffle layer first");
    if (axis < 0 || axis >= ctx.rank(0))
        return ctx.error("axis " + std::to_string(axis) + " is out of range for " + ctx.describe(0) + " (allowed: 0.." +
                         std::to_string(ctx.rank(0) - 1) + ")");
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
                return ctx.error("dimension " + std::to_string(d) + " of " + ctx.describe(i) + " must be " + out.str() +
                                 " as in the inputs before it (only axis " + std::to_string(axis) + " may differ)");
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

// Linear: nothing but dimensions of size 1 before the axis, so the inputs lie one behind the other. By pixels: whole
// cache lines of each pixel, in kHWC8 whole vectors.
std::vector<ir::Alias> aliases(ir::Node const& node, std::span<TensorRef const> in, std::span<TensorRef const> out)
{
    int const axis = node.attrsAs<Attrs>().axis;
    bool const isVectors = out[0].format == Format::kHWC8 && out[0].dims.rank == 4;
    bool const pixels = out[0].format == Format::kChannelsLast || isVectors;
    for (TensorRef const& x : in) {
        int64_t const unit = isVectors ? vectorOf(Format::kHWC8) : kCacheLine / sizeOf(x.type);
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

[[gnu::cold]] void cases(CaseList& list)
{
    list.add("by_hand", Attrs(1), {f32({2, 1}, {1, 2}), f32({2, 2}, {3, 4, 5, 6})}, {{1, 3, 4, 2, 5, 6}});
    list.add("one_input_by_hand", Attrs(0), {f32({2}, {1, 2})}, {{1, 2}});
    for (int t = 0; t < kDataTypeCount; ++t) {
        DataType const type = DataType(t);
        std::string const name = nameOf(type);
        list.add("axis0_" + name, Attrs(0), {input(type, {2, 3, 5}), input(type, {1, 3, 5})});
        list.add("axis1_" + name, Attrs(1), {input(type, {2, 3, 5}), input(type, {2, 1, 5}), input(type, {2, 7, 5})});
        list.add("axis2_" + name, Attrs(2), {input(type, {2, 3, 5}), input(type, {2, 3, 1})});
    }
    list.add("empty_part", Attrs(1), {f32({2, 0, 3}), f32({2, 2, 3}), f32({2, 0, 3})});
    list.add("all_empty", Attrs(0), {f32({0, 3}), f32({0, 3})});
    list.add("channels", Attrs(1), {f32({2, 16, 5, 3}), f32({2, 48, 5, 3}), f32({2, 32, 5, 3})});
    list.add("channels_tail", Attrs(1), {f32({2, 32, 3, 7}), f32({2, 19, 3, 7})});
    list.add("channels_odd", Attrs(1), {f32({2, 20, 3, 7}), f32({2, 19, 3, 7})});
    list.add("channels_padded", Attrs(1), {f32({1, 128, 3, 7}), f32({1, 128, 3, 7})});
    DataType const h = DataType::kHalf;
    list.add("channels_half", Attrs(1), {input(h, {2, 16, 5, 3}), input(h, {2, 8, 5, 3}), input(h, {2, 40, 5, 3})});
    list.add("channels_half_tail", Attrs(1), {input(h, {2, 16, 5, 3}), input(h, {2, 19, 5, 3})});
    list.add("channels_half_odd", Attrs(1), {input(h, {2, 5, 3, 3}), input(h, {2, 19, 3, 3}), input(h, {2, 8, 3, 3})});
    list.add("large_rows", Attrs(2), {f32({3, 50, 90}), f32({3, 50, 0}), f32({3, 50, 201})});
    list.add("large_outer", Attrs(0), {input(DataType::kHalf, {3, 50, 91}), input(DataType::kHalf, {8, 50, 91})});
    for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8})
        for (int64_t n : {64, 61}) {
            std::string const which = std::to_string(n) + "_" + nameOf(t);
            list.add("many_" + which, Attrs(1),
                     {input(t, {5, n}), input(t, {5, 0}), input(t, {5, 3 * n}), input(t, {5, 16})});
            list.add("nine_" + which, Attrs(0), std::vector<CaseInput>(9, input(t, {n})));
        }
    for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8}) {
        std::string const type = nameOf(t);
        list.add("odd_rows_" + type, Attrs(1),
                 {input(t, {37, 175}), input(t, {37, 1}), input(t, {37, 0}), input(t, {37, 154})});
        list.add("short_and_long_" + type, Attrs(1),
                 {input(t, {9, 3}), input(t, {9, 5}), input(t, {9, 333}), input(t, {9, 2})});
    }
    list.add("odd_planes", Attrs(1), {input(h, {3, 120, 9, 7}), input(h, {3, 57, 9, 7})});
    // Enough short rows for blocks that piece them together in shared memory; the last words are not whole.
    for (DataType t : {DataType::kFloat, DataType::kHalf, DataType::kInt8}) {
        std::string const type = nameOf(t);
        list.add("runs_" + type, Attrs(1), {input(t, {4101, 75}), input(t, {4101, 54})});
        list.add("runs_of_three_" + type, Attrs(2),
                 {input(t, {5, 853, 32}), input(t, {5, 853, 0}), input(t, {5, 853, 1}), input(t, {5, 853, 67})});
    }
    list.add("odd_rows_large", Attrs(1), {input(h, {20001, 75}), input(h, {20001, 54})});
    list.add("four_axes", Attrs(1), {f32({2, 3, 4, 5}), f32({2, 5, 4, 5})});
}

} // namespace

ir::OpDef const& def()
{
    static constexpr ir::OpDef kDef{
        .name = "concatenation",
        .maxInputs = -1,
        .makeAttrs = [] { return std::unique_ptr<ir::AttrsBase>(std::make_unique<Attrs>()); },
        .infer = infer,
        .reference = reference,
        .cases = cases,
        .cpuTactics = cpuTactics,
        .cudaTactics = cudaTactics,
        .aliases = aliases,
        .isCheap = true,
    };
    return kDef;
}

} // namespace tw::ops::concatenation
