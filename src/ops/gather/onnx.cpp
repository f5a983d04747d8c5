// SPDX-License-Identifier: Apache-2.0
// Gather, GatherElements, GatherND.
#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using nvinfer1::GatherMode;

void gather(ImportContext& ctx, GatherMode mode)
{
    ITensor &x = ctx.tensor(0), &indices = ctx.cast(ctx.tensor(1), DataType::kINT32);
    int const rank = x.getDimensions().nbDims;
    if (rank < 1)
        ctx.invalid("the data must have at least one dimension");
    auto& layer = ctx.added(ctx.network().addGatherV2(x, indices, mode));
    if (mode == GatherMode::kND) {
        int64_t const batch = ctx.attrInt("batch_dims", 0);
        if (batch < 0 || batch >= rank)
            ctx.invalid(fmt::format("batch_dims is {} for data of rank {}", batch, rank));
        layer.setNbElementWiseDims(int32_t(batch));
    } else {
        layer.setGatherAxis(ctx.axis(ctx.attrInt("axis", 0), rank));
    }
    ctx.setOutput(0, ctx.out(layer));
}

} // namespace

void register_gather(ImporterMap& map)
{
    map.add("Gather", [](auto& ctx) { gather(ctx, GatherMode::kDEFAULT); });
    map.add("GatherElements", [](auto& ctx) { gather(ctx, GatherMode::kELEMENT); });
    map.add("GatherND", [](auto& ctx) { gather(ctx, GatherMode::kND); });
}

} // namespace tw::onnx
