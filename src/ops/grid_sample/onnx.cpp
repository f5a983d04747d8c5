// SPDX-License-Identifier: Apache-2.0
// GridSample of images.
#include "onnx/sampling.h"

namespace tw::onnx {

namespace {

using nvinfer1::InterpolationMode;
using nvinfer1::SampleMode;
using Op = nvinfer1::ElementWiseOperation;

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

// A number of the grid, from -1 to 1, as a place in the image, in elements; outside mirrored or brought to the ends as the mode
// says. [n, p]
ITensor& placeOf(ImportContext& ctx, ITensor& grid, Size const& extent, bool alignCorners, SampleMode mode)
{
    auto number = [&](Size const& s) -> ITensor& {
        return ctx.unsqueeze(ctx.cast(ctx.asScalar(s), DataType::kFLOAT), {0, 1});
    };
    auto scalar = [&](double v) -> ITensor& { return ctx.scalarLike(v, grid); };
    Size const last = ctx.sub(extent, 1);
    ITensor& half = ctx.elementwise(ctx.elementwise(grid, scalar(1), Op::kSUM), scalar(0.5), Op::kPROD); // 0 to 1
    ITensor* x = &ctx.elementwise(half, number(alignCorners ? last : extent), Op::kPROD);
    if (!alignCorners)
        x = &ctx.elementwise(*x, scalar(0.5), Op::kSUB);
    if (mode == SampleMode::kFILL)
        return *x;
    if (mode == SampleMode::kREFLECT) {
        // Back and forth between the outer elements, or their outer edges: at most one element has no way to go.
        ITensor& low = scalar(alignCorners ? 0 : -0.5);
        ITensor& span = number(alignCorners ? ctx.max(last, 1) : extent);
        ITensor& away = ctx.unary(ctx.elementwise(*x, low, Op::kSUB), nvinfer1::UnaryOperation::kABS);
        ITensor& twice = ctx.elementwise(span, scalar(2), Op::kPROD);
        ITensor& turns = ctx.unary(ctx.elementwise(away, twice, Op::kDIV), nvinfer1::UnaryOperation::kFLOOR);
        ITensor& rest = ctx.elementwise(away, ctx.elementwise(turns, twice, Op::kPROD), Op::kSUB); // in [0, 2 span)
        ITensor& back = ctx.elementwise(twice, rest, Op::kSUB);
        x = &ctx.elementwise(ctx.elementwise(rest, back, Op::kMIN), low, Op::kSUM);
    }
    ITensor& inside = ctx.elementwise(*x, number(last), Op::kMIN);
    return ctx.elementwise(inside, scalar(0), Op::kMAX);
}

// [n, c, z, y, x] at grid [n, ..., 3], whose numbers are x, y, z; so for any number of dimensions.
void importVolumes(ImportContext& ctx, ITensor& x, ITensor& grid)
{
    int const rank = x.getDimensions().nbDims, spatial = rank - 2;
    Dims const d = grid.getDimensions();
    if (d.nbDims != rank || (d.d[rank - 1] >= 0 && d.d[rank - 1] != spatial))
        ctx.invalid("grid of shape " + describe(d) + " does not fit data of shape " + describe(x.getDimensions()));
    InterpolationMode const mode = interpolationOf(ctx);
    ctx.check(mode != InterpolationMode::kCUBIC, "cubic sampling is of images of two dimensions");
    SampleMode const outside = sampleModeOf(ctx);
    bool const alignCorners = ctx.attrInt("align_corners", 0) != 0;
    Sizes const size = ctx.sizesOf(x), sg = ctx.sizesOf(grid);
    Size const points = ctx.product({sg.begin() + 1, sg.end() - 1});
    ITensor& flat = ctx.reshape(ctx.cast(grid, DataType::kFLOAT), Sizes{sg[0], points, Size(spatial)});
    std::vector<ITensor*> places;
    for (int a = 0; a < spatial; ++a) {
        ITensor& numbers =
            ctx.slice(flat, {Size(0), Size(0), Size(spatial - 1 - a)}, {sg[0], points, Size(1)}, Sizes(3, Size(1)));
        places.push_back(&placeOf(ctx, ctx.squeeze(numbers, {2}), size[size_t(a + 2)], alignCorners, outside));
    }
    ITensor& y = sampledAt(ctx, x, places, mode, outside);
    Sizes shape{size[0], size[1]};
    shape.insert(shape.end(), sg.begin() + 1, sg.end() - 1);
    ctx.setOutput(0, ctx.reshape(y, shape));
}

void importGridSample(ImportContext& ctx)
{
    ITensor &x = ctx.tensor(0), &grid = ctx.tensor(1);
    int const rank = x.getDimensions().nbDims;
    ctx.check(rank >= 3 && rank <= 6,
              "the data has shape " + describe(x.getDimensions()) + "; images of rank 3 to 6 can be imported");
    if (rank != 4)
        return importVolumes(ctx, x, grid);
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
