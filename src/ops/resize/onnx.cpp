// SPDX-License-Identifier: Apache-2.0
// Resize (opset 10 and from 11 on) and Upsample (opset 7 and 9).
#include <algorithm>
#include <cmath>

#include "onnx/importer.h"
#include "onnx/integers.h"
#include "onnx/resampling.h"

namespace tw::onnx {

namespace {

using nvinfer1::InterpolationMode;
using nvinfer1::ResizeCoordinateTransformation;
using nvinfer1::ResizeRoundMode;
using nvinfer1::ResizeSelector;

InterpolationMode resizeModeOf(ImportContext& ctx)
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

// `isWhole`: output sizes are products of sizes and scales, not these rounded down.
void setCoordinates(ImportContext& ctx, nvinfer1::IResizeLayer& layer, Resampling const& r, bool isWhole)
{
    std::string const &name = r.coordinates, &rounding = r.rounding;
    bool const nearest = r.mode == InterpolationMode::kNEAREST;
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
        round = ResizeRoundMode::kCEIL;                                                // ceil(h + 1/2 - 1/2)
    } else if (name != "half_pixel" && !(name == "half_pixel_symmetric" && isWhole)) { // the same then
        ctx.fail("attribute 'coordinate_transformation_mode' is '" + name + "' (nearest_mode '" + rounding +
                 "'); half_pixel, pytorch_half_pixel, align_corners, asymmetric, tf_half_pixel_for_nn with floor "
                 "or round_prefer_floor, and half_pixel_symmetric with sizes or scales to whole sizes are possible");
    }
    layer.setCoordinateTransformation(transformation);
    layer.setNearestRounding(round);
}

void setScales(ImportContext& ctx, nvinfer1::IResizeLayer& layer, std::vector<float> const& scales, int rank)
{
    if (int(scales.size()) != rank)
        ctx.invalid(fmt::format("there are {} scales for {} dimensions", scales.size(), rank));
    layer.setScales(scales.data(), int32_t(scales.size()));
}

void setSizes(ImportContext& ctx, nvinfer1::IResizeLayer& layer, Sizes const& sizes, int rank)
{
    if (int(sizes.size()) != rank)
        ctx.invalid(fmt::format("there are {} sizes for {} dimensions", sizes.size(), rank));
    if (!ImportContext::allKnown(sizes)) {
        layer.setInput(1, ctx.asTensor(sizes));
        return;
    }
    std::vector<int64_t> dims;
    for (Size const& s : sizes) {
        if (s.value < 0 || s.value > INT32_MAX)
            ctx.invalid(fmt::format("a size is {}", s.value));
        dims.push_back(s.value);
    }
    layer.setOutputDimensions(makeDims(dims));
}

// Scales that the network computes or that are an input of it.
bool isComputed(ImportContext& ctx, int i)
{
    return ctx.hasInput(i) && !ctx.isConstant(i);
}

// The sizes that computed scales of these extents give, rounded down. The layer takes sizes, so coordinates follow the
// quotient of sizes: where a product is not whole, it is not the scale.
Sizes scaledSizes(ImportContext& ctx, Sizes const& extents, Value const& scales)
{
    Dims const d = scales.dims();
    if (d.nbDims != 1 || d.d[0] != int32_t(extents.size()) || scales.type() != DataType::kFLOAT)
        ctx.fail(fmt::format("the scales are computed or an input, {}{}; they can be {} numbers of type FLOAT",
                             typeName(scales.type()), describe(d), extents.size()));
    ctx.warn(
        "the scales are known to a run alone: sizes are floor(size * scale), and coordinates follow the quotient of "
        "sizes, which differs from a scale where its product is not whole; an initializer counts as it is");
    ITensor& in = ctx.cast(ctx.asTensor(extents), DataType::kFLOAT);
    ITensor& out = ctx.elementwise(in, scales.tensor(), nvinfer1::ElementWiseOperation::kPROD);
    // A scale that is a quotient of sizes leads to the dividend, as one that is an initializer does: FLOAT rounds a
    // quotient by 2^-24 of it at most. Sizes from 2^22 on leave no room for that.
    ITensor& share = ctx.elementwise(out, ctx.scalarLike(0x1p-24, out), nvinfer1::ElementWiseOperation::kPROD);
    ITensor& lost = ctx.elementwise(share, ctx.scalarLike(0.25, out), nvinfer1::ElementWiseOperation::kMIN);
    ITensor& sum = ctx.elementwise(out, lost, nvinfer1::ElementWiseOperation::kSUM);
    return ctx.sizesFrom(Value(ctx.cast(ctx.unary(sum, nvinfer1::UnaryOperation::kFLOOR), DataType::kINT32)));
}

// What is given for the axes of attribute 'axes' (opset 18), among what holds for the others.
template <class T>
std::vector<T> spread(ImportContext& ctx, std::vector<T> const& given, std::vector<T> all)
{
    if (!ctx.hasAttr("axes"))
        return given;
    std::vector<int> const axes = ctx.axes(ctx.attrInts("axes"), int(all.size()));
    if (given.size() != axes.size())
        ctx.invalid(fmt::format("there are {} scales or sizes for {} axes", given.size(), axes.size()));
    for (size_t i = 0; i < axes.size(); ++i)
        all[size_t(axes[i])] = given[i];
    return all;
}

// Scales that lead to whole sizes, as far as sizes are known.
bool isWhole(Dims const& x, std::vector<float> const& scales)
{
    for (size_t i = 0; i < scales.size() && int(i) < x.nbDims; ++i) {
        float const size = float(x.d[i]) * scales[i];
        if (x.d[i] < 0 ? scales[i] != std::floor(scales[i]) : size != std::floor(size))
            return false;
    }
    return true;
}

// The layer has no integers: their numbers in FLOAT.
ITensor& imageOf(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    if (x.getType() != DataType::kINT32)
        return x;
    ctx.warn("INT32 data of " + ctx.opType() + " is taken as FLOAT: numbers beyond 2^24 lose their last bits");
    return ctx.cast(x, DataType::kFLOAT);
}

// Between the numbers of integers there are others: what stands behind the point goes, as in a conversion.
Value asImage(ImportContext& ctx, ITensor& y, InterpolationMode mode)
{
    Value const& x = ctx.input(0);
    if (x.integers() == Integers::kOfType)
        return x.type() == DataType::kINT32 ? ctx.cast(y, DataType::kINT32) : y;
    if (mode == InterpolationMode::kNEAREST)
        return Value(y, x.integers());
    IntegerRange const r = rangeOf(x.integers());
    ITensor& inside = ctx.activation(y, nvinfer1::ActivationType::kCLIP, float(r.lowest), float(r.largest));
    return Value(ctx.cast(inside, DataType::kINT32), x.integers());
}

// The scales of opset 10 and of Upsample: coordinates are o / s, the nearest element is the one below.
void importByScales(ImportContext& ctx)
{
    ITensor& x = imageOf(ctx);
    bool const attribute = ctx.opType() == "Upsample" && ctx.opset() < 9;
    if (attribute && !ctx.hasAttr("scales"))
        ctx.invalid("attribute 'scales' is missing");
    bool const computed = !attribute && isComputed(ctx, 1);
    std::vector<float> scales;
    if (!computed)
        scales = attribute ? ctx.attrFloats("scales") : ctx.constantFloats(1, "scales");
    auto& layer = ctx.added(ctx.network().addResize(x));
    layer.setResizeMode(resizeModeOf(ctx));
    layer.setCoordinateTransformation(ResizeCoordinateTransformation::kASYMMETRIC);
    layer.setNearestRounding(ResizeRoundMode::kFLOOR);
    if (computed)
        setSizes(ctx, layer, scaledSizes(ctx, ctx.sizesOf(x), ctx.input(1)), x.getDimensions().nbDims);
    else
        setScales(ctx, layer, scales, x.getDimensions().nbDims);
    ctx.setOutput(0, asImage(ctx, ctx.out(layer), resizeModeOf(ctx)));
}

// Whether the layer has the operator's coordinates and filter. isWhole: output sizes are products of sizes and scales.
bool isOfLayer(ImportContext& ctx, Resampling const& r, bool isWhole)
{
    std::string const &name = r.coordinates, &rounding = r.rounding;
    bool const isNearest = r.mode == InterpolationMode::kNEAREST;
    return (isNearest || !r.antialiases) && name != "tf_crop_and_resize" &&
           ctx.attrString("keep_aspect_ratio_policy", "stretch") == "stretch" &&
           (name != "half_pixel_symmetric" || isWhole) &&
           (name != "tf_half_pixel_for_nn" || (isNearest && (rounding == "floor" || rounding == "round_prefer_floor")));
}

// The axes that the operator names, all without attribute 'axes'.
std::vector<int> namedAxes(ImportContext& ctx, int rank)
{
    return ctx.hasAttr("axes") ? ctx.axes(ctx.attrInts("axes"), rank) : allAxes(rank);
}

std::vector<ResampledAxis> resampledAxes(ImportContext& ctx, ITensor& x, Resampling const& r, bool scaled)
{
    Dims const d = x.getDimensions();
    std::vector<int> const axes = namedAxes(ctx, d.nbDims);
    char const* const kWhat = scaled ? "scales" : "sizes";
    ctx.check(ctx.isConstant(scaled ? 2 : 3),
              fmt::format("with these coordinates or this filter, {} must be an initializer!", kWhat));
    if (ctx.input(scaled ? 2 : 3).constant().count != int64_t(axes.size()))
        ctx.invalid(
            fmt::format("there are {} {} for {} axes", ctx.input(scaled ? 2 : 3).constant().count, kWhat, axes.size()));
    std::vector<double> given;
    for (int64_t i = 0; i < int64_t(axes.size()); ++i)
        given.push_back(ctx.constant(scaled ? 2 : 3, kWhat).floatAt(i));
    ctx.decideBy(ctx.input(scaled ? 2 : 3));
    std::string const policy = ctx.attrString("keep_aspect_ratio_policy", "stretch");
    if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
        ctx.invalid("attribute 'keep_aspect_ratio_policy' is '" + policy +
                    "' (allowed: stretch, not_larger, not_smaller)");
    std::vector<float> roi;
    if (r.coordinates == "tf_crop_and_resize") {
        roi = ctx.constantFloats(1, "roi");
        if (roi.size() != 2 * axes.size())
            ctx.invalid(fmt::format("roi has {} numbers for {} axes", roi.size(), axes.size()));
    }
    std::vector<ResampledAxis> list;
    for (size_t i = 0; i < axes.size(); ++i) {
        ResampledAxis a;
        a.axis = axes[i];
        a.in = d.d[axes[i]];
        bool const stays = roi.empty() && (scaled ? given[i] == 1 : a.in >= 0 && given[i] == double(a.in));
        if (stays && policy == "stretch")
            continue;
        if (!roi.empty()) {
            a.roiStart = roi[i];
            a.roiEnd = roi[i + axes.size()];
            if (scaled && given[i] == 1 && a.roiStart == 0 && a.roiEnd == 1)
                continue;
        }
        ctx.check(
            a.in >= 0,
            fmt::format("with these coordinates or this filter, the extent of axis {} must be known; the shape is {}",
                        a.axis, describe(d)));
        ctx.check(given[i] > 0 && given[i] <= INT32_MAX, fmt::format("one of the {} is {}", kWhat, given[i]));
        a.scale = scaled ? given[i] : given[i] / double(a.in);
        // In floats, as the layer and the shapes of ONNX are: 5 times 2.6 is 13.
        double const size = scaled ? double(std::floor(float(a.in) * float(given[i]))) : given[i];
        a.out = int64_t(std::min(size, double(INT32_MAX)));
        list.push_back(a);
    }
    if (policy == "stretch" || scaled || list.empty())
        return list;
    auto const [least, most] = std::ranges::minmax(list, {}, &ResampledAxis::scale);
    double const scale = policy == "not_larger" ? least.scale : most.scale;
    for (ResampledAxis& a : list) {
        a.scale = scale;
        a.out = int64_t(std::floor(std::min(scale * double(a.in), double(INT32_MAX)) + 0.5));
    }
    return list;
}

Resampling resamplingOf(ImportContext& ctx)
{
    Resampling r;
    r.mode = resizeModeOf(ctx);
    r.coordinates = ctx.attrString("coordinate_transformation_mode", "half_pixel");
    r.rounding = ctx.attrString("nearest_mode", "round_prefer_floor");
    r.cubicCoefficient = ctx.attrFloat("cubic_coeff_a", -0.75f);
    r.extrapolation = ctx.attrFloat("extrapolation_value", 0);
    r.excludesOutside = ctx.attrInt("exclude_outside", 0) != 0;
    r.antialiases = ctx.attrInt("antialias", 0) != 0;
    return r;
}

ITensor& importedAsProducts(ImportContext& ctx, ITensor& x, Resampling const& r, bool scaled)
{
    ITensor& y = resampled(ctx, x, r, resampledAxes(ctx, x, r, scaled));
    return &y == &x ? ctx.identity(y) : y;
}

void importResize(ImportContext& ctx)
{
    ITensor& x = imageOf(ctx);
    int const rank = x.getDimensions().nbDims;
    // An input that is left out may also be given with no elements.
    auto given = [&](int i) { return ctx.hasInput(i) && !(ctx.isConstant(i) && ctx.input(i).constant().count == 0); };
    bool const scaled = given(2), sized = given(3);
    if (scaled == sized)
        ctx.invalid("needs exactly one of 'scales' and 'sizes'");
    Resampling const r = resamplingOf(ctx);
    bool const computed = scaled && isComputed(ctx, 2);
    std::vector<float> scales;
    if (scaled && !computed)
        scales = spread(ctx, ctx.constantFloats(2, "scales"), std::vector<float>(size_t(rank), 1.0f));
    bool const toWhole = sized || (!computed && isWhole(x.getDimensions(), scales));
    if (!isOfLayer(ctx, r, toWhole))
        return ctx.setOutput(0, asImage(ctx, importedAsProducts(ctx, x, r, scaled), r.mode));
    auto& layer = ctx.added(ctx.network().addResize(x));
    layer.setResizeMode(r.mode);
    setCoordinates(ctx, layer, r, toWhole);
    layer.setCubicCoeff(float(r.cubicCoefficient));
    layer.setExcludeOutside(r.excludesOutside);
    if (computed) {
        Sizes const all = ctx.sizesOf(x);
        Sizes extents = all;
        if (ctx.hasAttr("axes")) {
            extents.clear();
            for (int axis : ctx.axes(ctx.attrInts("axes"), rank))
                extents.push_back(all[size_t(axis)]);
        }
        setSizes(ctx, layer, spread(ctx, scaledSizes(ctx, extents, ctx.input(2)), all), rank);
    } else if (scaled)
        setScales(ctx, layer, scales, rank);
    else if (ctx.input(3).isTensor() && !ctx.hasAttr("axes"))
        layer.setInput(1, ctx.input(3).tensor());
    else
        setSizes(ctx, layer, spread(ctx, ctx.sizesFrom(ctx.input(3)), ctx.sizesOf(x)), rank);
    ctx.setOutput(0, asImage(ctx, ctx.out(layer), r.mode));
}

} // namespace

void register_resize(ImporterMap& map)
{
    map.add("Upsample", importByScales);
    map.add("Resize", importByScales, 10, 10);
    map.add("Resize", importResize, 11);
}

} // namespace tw::onnx
