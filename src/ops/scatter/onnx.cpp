// SPDX-License-Identifier: Apache-2.0
// Scatter, ScatterElements, ScatterND.
#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using nvinfer1::ScatterMode;

void scatter(ImportContext& ctx, ScatterMode mode)
{
    std::string const reduction = ctx.attrString("reduction", "none");
    if (reduction != "none")
        return scatterReduced(ctx, mode, reduction);
    ITensor &x = ctx.tensor(0), &indices = ctx.cast(ctx.tensor(1), DataType::kINT32), &updates = ctx.tensor(2);
    int const rank = x.getDimensions().nbDims;
    if (rank < 1)
        ctx.invalid("the data must have at least one dimension");
    auto& layer = ctx.added(ctx.network().addScatter(x, indices, updates, mode));
    if (mode == ScatterMode::kELEMENT)
        layer.setAxis(ctx.axis(ctx.attrInt("axis", 0), rank));
    ctx.setOutput(0, ctx.out(layer));
}

void importScatterElements(ImportContext& ctx)
{
    scatter(ctx, ScatterMode::kELEMENT);
}
} // namespace

void register_scatter(ImporterMap& map)
{
    map.add("Scatter", importScatterElements);
    map.add("ScatterElements", importScatterElements);
    map.add("ScatterND", [](auto& ctx) { scatter(ctx, ScatterMode::kND); });
}

} // namespace tw::onnx
