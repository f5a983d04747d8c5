// SPDX-License-Identifier: Apache-2.0
// Resize (opset 10 and from 11 on) and Upsample (opset 7 and 9).
#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using nvinfer1::InterpolationMode;
using nvinfer1::ResizeCoordinateTransformation;
using nvinfer1::ResizeRoundMode;
using nvinfer1::ResizeSelector;

InterpolationMode modeOf(ImportContext& ctx)
{
    std::string const mode = ctx.attrString("mode", "nearest");
    if (mode == "nearest")
        return InterpolationMode::kNEAREST;
    if (mode == "linear" || mode == "bilinear")
        return InterpolationMode::kLINEAR;
    if (mode == "cubic")
        return InterpolationMode::kCUBIC;
    ctx.fail("attribute 'mode' is '" + mode + "'; nearest, linear and cubic are possible");
}

void setCoordinates(ImportContext& ctx, nvinfer1::IResizeLayer& layer, bool nearest)
{
    std::string const name = ctx.attrString("coordinate_transformation_mode", "half_pixel");
    std::string const rounding = ctx.attrString("nearest_mode", "round_prefer_floor");
    ResizeRoundMode round = ResizeRoundMode::kHALF_DOWN;
    if (rounding == "round_prefer_ceil")
        round = ResizeRoundMode::kHALF_UP;
    else if (rounding == "floor")
        round = ResizeRoundMode::kFLOOR;
    else if (rounding == "ceil")
        round = ResizeRoundMode::kCEIL;
    else if (rounding != "round_prefer_floor")
        ctx.fail("attribute 'nearest_mode' is '" + rounding +
                 "'; round_prefer_floor, round_prefer_ceil, floor and ceil are possible");
    auto transformation = ResizeCoordinateTransformation::kHALF_PIXEL;
    if (name == "pytorch_half_pixel") {
        layer.setSelectorForSinglePixel(ResizeSelector::kUPPER);
    } else if (name == "align_corners") {
        transformation = ResizeCoordinateTransformation::kALIGN_CORNERS;
    } else if (name == "asymmetric") {
        transformation = ResizeCoordinateTransformation::kASYMMETRIC;
    } else if (name == "tf_half_pixel_for_nn" && nearest && round == ResizeRoundMode::kFLOOR) {
        round = ResizeRoundMode::kHALF_UP; // (o + 1/2) / s is the half pixel h plus 1/2: floor of it
    } else if (name == "tf_half_pixel_for_nn" && nearest && round == ResizeRoundMode::kHALF_DOWN) {
        round = ResizeRoundMode::kCEIL; // ceil(h + 1/2 - 1/2)
    } else if (name != "half_pixel") {
        ctx.fail("attribute 'coordinate_transformation_mode' is '" + name + "' (nearest_mode '" + rounding +
                 "'); half_pixel, pytorch_half_pixel, align_corners, asymmetric, and tf_half_pixel_for_nn with floor "
                 "or round_prefer_floor are possible");
    }
    layer.setCoordinateTransformation(transformation);
    layer.setNearestRounding(round);
}

void setScales(ImportContext& ctx, nvinfer1::IResizeLayer& layer, std::vector<float> const& scales, int rank)
{
    if (int(scales.size()) != rank)
        ctx.invalid("there are " + std::to_string(scales.size()) + " scales for " + std::to_string(rank) +
                    " dimensions");
    layer.setScales(scales.data(), int32_t(scales.size()));
}

void setSizes(ImportContext& ctx, nvinfer1::IResizeLayer& layer, Value const& sizes, int rank)
{
    if (sizes.isTensor()) {
        layer.setInput(1, sizes.tensor());
        return;
    }
    std::vector<int64_t> const dims = sizes.constant().ints();
    if (int(dims.size()) != rank)
        ctx.invalid("there are " + std::to_string(dims.size()) + " sizes for " + std::to_string(rank) + " dimensions");
    for (int64_t d : dims)
        if (d < 0 || d > INT32_MAX)
            ctx.invalid("a size is " + std::to_string(d));
    layer.setOutputDimensions(makeDims(dims));
}

// The scales of opset 10 and of Upsample: coordinates are o / s, the nearest element is the one below.
void importByScales(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    bool const attribute = ctx.opType() == "Upsample" && ctx.opset() < 9;
    if (attribute && !ctx.hasAttr("scales"))
        ctx.invalid("attribute 'scales' is missing");
    std::vector<float> const scales = attribute ? ctx.attrFloats("scales") : ctx.constantFloats(1, "scales");
    auto& layer = ctx.added(ctx.network().addResize(x));
    layer.setResizeMode(modeOf(ctx));
    layer.setCoordinateTransformation(ResizeCoordinateTransformation::kASYMMETRIC);
    layer.setNearestRounding(ResizeRoundMode::kFLOOR);
    setScales(ctx, layer, scales, x.getDimensions().nbDims);
    ctx.setOutput(0, ctx.out(layer));
}

void importResize(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    int const rank = x.getDimensions().nbDims;
    for (char const* attr : {"axes", "antialias"}) // opset 18
        ctx.check(!ctx.hasAttr(attr) || (std::string(attr) == "antialias" && ctx.attrInt(attr, 0) == 0),
                  std::string("attribute '") + attr + "' is not possible: IResizeLayer has nothing like it");
    ctx.check(ctx.attrString("keep_aspect_ratio_policy", "stretch") == "stretch",
              "attribute 'keep_aspect_ratio_policy' must be 'stretch'");
    // An input that is left out may also be given with no elements.
    auto given = [&](int i) { return ctx.hasInput(i) && !(ctx.isConstant(i) && ctx.input(i).constant().count == 0); };
    bool const scaled = given(2), sized = given(3);
    if (scaled == sized)
        ctx.invalid("needs exactly one of 'scales' and 'sizes'");
    InterpolationMode const mode = modeOf(ctx);
    std::vector<float> scales;
    if (scaled)
        scales = ctx.constantFloats(2, "scales");
    auto& layer = ctx.added(ctx.network().addResize(x));
    layer.setResizeMode(mode);
    setCoordinates(ctx, layer, mode == InterpolationMode::kNEAREST);
    layer.setCubicCoeff(ctx.attrFloat("cubic_coeff_a", -0.75f));
    layer.setExcludeOutside(ctx.attrInt("exclude_outside", 0) != 0);
    if (scaled)
        setScales(ctx, layer, scales, rank);
    else
        setSizes(ctx, layer, ctx.input(3), rank);
    ctx.setOutput(0, ctx.out(layer));
}

} // namespace

void register_resize(ImporterMap& map)
{
    map.add("Upsample", importByScales);
    map.add("Resize", importByScales, 10, 10);
    map.add("Resize", importResize, 11);
}

} // namespace tw::onnx
