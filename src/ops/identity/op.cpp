// SPDX-License-Identifier: Apache-2.0
#include "ops/identity/op.h"

#include <limits>

#include "tactic/cases.h"
#include "tactic/registry.h"

namespace tw::ops::identity {

bool converts(DataType from, DataType to)
{
    if (from == to)
        return true;
    if (from == DataType::kInt8 || to == DataType::kInt8)
        return false;
    if (from == DataType::kUInt8 || to == DataType::kUInt8)
        return isFloating(from) || isFloating(to);
    return true;
}

namespace {

Result<void> infer(ir::InferContext& ctx)
{
    auto const& a = ctx.attrs<Attrs>();
    if (a.outputType < -1 || a.outputType >= kDataTypeCount)
        return ctx.error("there is no output type " + std::to_string(a.outputType) + " (allowed: -1.." +
                         std::to_string(kDataTypeCount - 1) + ")");
    DataType const from = ctx.type(0), to = a.outputType == Attrs::kSameType ? from : DataType(a.outputType);
    if (!converts(from, to)) {
        std::string const cure = from == DataType::kInt8 || to == DataType::kInt8
                                     ? "i8 needs a scale: use a quantize or dequantize layer"
                                     : "go through f32";
        return ctx.error(ctx.describe(0) + " cannot be converted to " + nameOf(to) + "; " + cure);
    }
    ctx.output(0, to, ctx.shape(0));
    bool const whole =
        (from == DataType::kInt32 || from == DataType::kBool) && (to == DataType::kInt32 || to == DataType::kBool);
    auto const* content = ctx.content(0);
    if (!whole || !content)
        return {};
    std::vector<ir::Dim> out = *content;
    if (from == DataType::kInt32 && to == DataType::kBool)
        for (ir::Dim& d : out)
            d = ir::Dim(1) - ir::Dim::make(ir::DimOp::kEqual, d, 0);
    ctx.outputContent(0, std::move(out));
    return {};
}

void domain(ir::Node const& node, int, Domain& d)
{
    if (isFloating(node.inputs[0]->type))
        d = Domain{-300, 300, false, false};
    else
        d = Domain{-70000, 70000, true, false};
    if (node.inputs[0]->type == DataType::kInt8)
        d = Domain{-128, 127, true, false};
    if (node.inputs[0]->type == DataType::kUInt8)
        d = Domain{0, 255, true, false};
}

std::vector<ir::Alias> aliases(ir::Node const&, std::span<TensorRef const> in, std::span<TensorRef const> out)
{
    bool const same = in[0].type == out[0].type && in[0].format == out[0].format;
    return same ? std::vector<ir::Alias>{ir::Alias{true, 0, 0}} : std::vector<ir::Alias>();
}

[[gnu::cold]] void cases(CaseList& list)
{
    double const nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
    std::vector<double> const x{1.75, -1.75, 0, -0.25, 300, -300, 3e9, -3e9, nan, inf};
    double const lo = -2147483648.0, hi = 2147483647.0;
    list.add("f32_to_i32_by_hand", Attrs(DataType::kInt32), {f32({10}, x)}, {{1, -1, 0, 0, 300, -300, hi, lo, 0, hi}});
    list.add("f32_to_u8_by_hand", Attrs(DataType::kUInt8), {f32({10}, x)}, {{1, 0, 0, 0, 255, 0, 255, 0, 0, 255}});
    list.add("f32_to_b_by_hand", Attrs(DataType::kBool), {f32({10}, x)}, {{1, 1, 0, 1, 1, 1, 1, 1, 1, 1}});
    list.add("f32_to_f16_by_hand", Attrs(DataType::kHalf), {f32({4}, {1.0 + 0x1p-11, 1.0 + 3 * 0x1p-11, 65520, -1e-9})},
             {{1, 1.0 + 0x1p-9, inf, 0}});
    list.add("i32_to_f32_by_hand", Attrs(DataType::kFloat), {input(DataType::kInt32, {3}, {16777217, 16777219, lo})},
             {{16777216, 16777220, lo}});
    list.add("i32_to_b_by_hand", Attrs(DataType::kBool), {input(DataType::kInt32, {4}, {0, 1, -256, lo})},
             {{0, 1, 1, 1}});
    for (int from = 0; from < kDataTypeCount; ++from)
        for (int to = 0; to < kDataTypeCount; ++to)
            if (converts(DataType(from), DataType(to)))
                list.add(std::string(nameOf(DataType(from))) + "_to_" + nameOf(DataType(to)), Attrs(DataType(to)),
                         {input(DataType(from), {3, 7, 29})});
    for (DataType t : {DataType::kInt32, DataType::kHalf, DataType::kBool}) {
        std::string const name = nameOf(t);
        list.add("long_f32_to_" + name, Attrs(t), {f32({3, 20011})});
        list.add("long_" + name + "_to_f32", Attrs(DataType::kFloat), {input(t, {3, 20011})});
    }
    list.add("f16_to_f32_by_hand", Attrs(DataType::kFloat), {input(DataType::kHalf, {5}, {1.5, -inf, nan, 6e-8, -0.0})},
             {{1.5, -inf, nan, 0x1p-24, 0}});
    list.add("same", Attrs(), {f32({2, 300})});
    list.add("scalar", Attrs(DataType::kInt32), {f32({})});
    list.add("empty", Attrs(DataType::kHalf), {f32({0, 3})});
}

} // namespace

ir::OpDef const& def()
{
    static constexpr ir::OpDef kDef{
        .name = "identity",
        .makeAttrs = [] { return std::unique_ptr<ir::AttrsBase>(std::make_unique<Attrs>()); },
        .infer = infer,
        .reference = reference,
        .domain = domain,
        .cases = cases,
        .cpuTactics = cpuTactics,
        .cudaTactics = cudaTactics,
        .aliases = aliases,
        .isElementwise = true,
        .isCheap = true,
        .mixesFloats = true,
    };
    return kDef;
}

} // namespace tw::ops::identity
