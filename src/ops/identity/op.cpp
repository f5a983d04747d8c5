// SPDX-License-Identifier: Apache-2.0
#include "ops/identity/op.h"

#include <algorithm>

#include "ir/signs.h"
#include "tactic/domain.h"
#include "tactic/layer_facts.h"
#include "tactic/registry.h"

namespace tw::ops::identity {

bool converts(DataType from, DataType to)
{
    if (from == to)
        return true;
    if (isQuantized(from) || isQuantized(to))
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
        return ctx.error("there is no output type {} (allowed: -1..{})", a.outputType, kDataTypeCount - 1);
    DataType const from = ctx.type(0), to = a.outputType == Attrs::kSameType ? from : DataType(a.outputType);
    if (!converts(from, to)) {
        std::string const cure = isQuantized(from) || isQuantized(to)
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
    if (node.attrsAs<Attrs>().outputType == int32_t(DataType::kBool))
        d = Domain{-1, 1, true, false}; // zeros among them
    if (DataType const t = node.inputs[0]->type; isQuantized(t) || t == DataType::kUInt8)
        d = Domain::all(t);
}

std::vector<ir::Alias> aliases(ir::Node const&, std::span<TensorRef const> in, std::span<TensorRef const> out)
{
    bool const same = in[0].type == out[0].type && in[0].format == out[0].format;
    return same ? std::vector<ir::Alias>{ir::Alias{true, 0, 0}} : std::vector<ir::Alias>();
}

// A copy or a cast: 8.5 makes both with its reformat kernels, and says whether the network has that layer.
void inspect(LayerFacts& facts)
{
    facts.kind("Reformat");
    auto const& layers = facts.node.layers;
    bool const isLayer = std::find(layers.begin(), layers.end(), facts.node.name) != layers.end();
    facts.add("Origin", isLayer ? "IDENTITY" : "REFORMAT");
}

} // namespace

constinit ir::OpDef const kDef{
    .name = "identity",
    TW_OP_PARTS(Attrs),
    .domain = domain,
    .isNonNegative = ir::ofFirstInput,
    .inspect = inspect,
    .aliases = aliases,
    .isElementwise = true,
    .isCheap = true,
    .mixesFloats = true,
    .computesShapes = true,
};

} // namespace tw::ops::identity
