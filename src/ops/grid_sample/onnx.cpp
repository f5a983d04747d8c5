// SPDX-License-Identifier: Apache-2.0
// GridSample of images.
#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using nvinfer1::InterpolationMode;
using nvinfer1::SampleMode;

// Opset 20 calls them linear and cubic.
InterpolationMode interpolationOf(ImportContext& ctx)
{
    std::string const mode = ctx.attrString("mode", "linear");
    if (mode == "linear" || mode == "bilinear")
        return InterpolationMode::kLINEAR;
    if (mode == "nearest")
        return InterpolationMode::kNEAREST;
    if (mode != "cubic" && mode != "bicubic")
        ctx.invalid("mode '" + mode + "' is unknown (allowed: linear, nearest, cubic, bilinear, bicubic)");
    return InterpolationMode::kCUBIC;
}

SampleMode sampleModeOf(ImportContext& ctx)
{
    std::string const padding = ctx.attrString("padding_mode", "zeros");
    if (padding == "zeros")
        return SampleMode::kFILL;
    if (padding == "border")
        return SampleMode::kCLAMP;
    if (padding != "reflection")
        ctx.invalid("padding_mode '" + padding + "' is unknown (allowed: zeros, border, reflection)");
    return SampleMode::kREFLECT;
}

void importGridSample(ImportContext& ctx)
{
    ITensor &x = ctx.tensor(0), &grid = ctx.tensor(1);
    int const rank = x.getDimensions().nbDims;
    ctx.check(rank == 4, "the data has shape " + describe(x.getDimensions()) + "; images of rank 4 can be imported");
    auto& layer = ctx.added(ctx.network().addGridSample(x, grid));
    layer.setInterpolationMode(interpolationOf(ctx));
    layer.setSampleMode(sampleModeOf(ctx));
    layer.setAlignCorners(ctx.attrInt("align_corners", 0) != 0);
    ctx.setOutput(0, ctx.out(layer));
}

} // namespace

void register_grid_sample(ImporterMap& map)
{
    map.add("GridSample", importGridSample);
}

} // namespace tw::onnx
