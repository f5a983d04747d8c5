// SPDX-License-Identifier: Apache-2.0
// Plugins that bring regions of feature maps to one size.
#include "api/standard_plugins/standard_plugin.h"
#include "ops/roi_align/op.h"
#include "tactic/registry.h"

namespace tw::ops::roi_align {

namespace {

using api::PluginFields, api::PluginLowering, ir::Value;

Value* regions(PluginLowering& p, Attrs a, Value* rois, Value* images, PluginLowering::Values const& maps)
{
    PluginLowering::Values in{rois, images};
    in.insert(in.end(), maps.begin(), maps.end());
    return p.value(roi_align::def(), std::move(a), std::move(in));
}

PluginLowering::Values from(PluginLowering& p, size_t first)
{
    PluginLowering::Values maps;
    for (size_t i = first; i < p.inputs.size(); ++i)
        maps.push_back(p.in(i, 4));
    return maps;
}

void roiAlign(PluginLowering& p)
{
    Attrs a;
    a.mode = p.fields.integer("mode") == 0 ? Mode::kMax : Mode::kAverage;
    a.grid = p.fields.flag("coordinate_transformation_mode") ? Grid::kHalfPixel : Grid::kAtLeastOne;
    a.height = p.fields.integer("output_height");
    a.width = p.fields.integer("output_width");
    a.samples = p.fields.integer("sampling_ratio");
    a.scale = p.fields.number("spatial_scale");
    p.outputs = {regions(p, a, p.in(1, 2), p.in(2, 1), {p.in(0, 4)})};
}

void cropAndResize(PluginLowering& p)
{
    Attrs a;
    a.boxes = Boxes::kNormalized;
    a.grid = Grid::kCorners;
    a.outside = Outside::kZero;
    a.height = p.fields.integer("crop_height");
    a.width = p.fields.integer("crop_width");
    a.samples = 1;
    a.isRowFirst = true;
    p.outputs = {regions(p, a, p.reshape(p.in(1, 4), {0, 0, 4}), nullptr, {p.in(0, 4)})};
}

void pyramid(PluginLowering& p)
{
    constexpr Grid kGrids[] = {Grid::kCorners, Grid::kEdges, Grid::kWhole, Grid::kHalfPixel}; // from -1 on
    Attrs a;
    bool const isOld = p.fields.flag("legacy");
    auto const number = [&](char const* field, int64_t old) { return isOld ? old : p.fields.integer(field); };
    std::vector<double> size = p.fields.numbers("image_size");
    if (size.empty())
        size = {1024, 1024};
    double const side = isOld ? 224 : p.fields.number("fpn_scale");
    double const least = isOld ? (224.0 * 224.0 * 2 / (1024.0 * 1024.0)) / 16 : side * side / (size[0] * size[1]) / 4;
    a.boxes = Boxes::kTidied;
    a.grid = kGrids[number("roi_coords_transform", -1) + 1];
    a.outside = Outside::kClamp;
    a.height = a.width = p.fields.integer("pooled_size");
    a.samples = number("sampling_ratio", 1);
    a.isRowFirst = number("roi_coords_swap", 1) != 0;
    a.isAbsolute = number("roi_coords_absolute", 0) != 0;
    a.isPlusOne = number("roi_coords_plusone", 0) != 0;
    a.imageHeight = size[0];
    a.imageWidth = size[1];
    a.areas = {least, 4 * least, 16 * least};
    p.outputs = {regions(p, a, p.in(0, 3), nullptr, from(p, 1))};
}

void multilevelCrop(PluginLowering& p)
{
    constexpr double kLeast = 224.0 * 224.0 / 4;
    Attrs a;
    a.grid = Grid::kWhole;
    a.outside = Outside::kClamp;
    a.height = a.width = p.fields.integer("pooled_size");
    a.samples = 1;
    a.scale = 0.25; // of level 2, the first one
    a.isRowFirst = a.isEmptySkipped = true;
    a.areas = {kLeast, 4 * kLeast, 16 * kLeast, 64 * kLeast};
    p.outputs = {regions(p, a, p.in(0, 3), nullptr, from(p, 1))};
}

std::string outOf(PluginFields const& f, char const* field, int64_t least, int64_t most)
{
    int64_t const v = f.integer(field);
    return v >= least && v <= most ? "" : fmt::format("{} is {}; it must be {} to {}", field, v, least, most);
}

std::string outOf(PluginFields const& f, std::initializer_list<char const*> fields, int64_t least, int64_t most)
{
    for (char const* field : fields)
        if (std::string const wrong = outOf(f, field, least, most); !wrong.empty())
            return wrong;
    return "";
}

std::string checkRoiAlign(PluginFields const& f)
{
    if (std::string const wrong = outOf(f, {"mode", "coordinate_transformation_mode"}, 0, 1); !wrong.empty())
        return wrong;
    if (std::string const wrong = outOf(f, "sampling_ratio", 0, kMostSamples); !wrong.empty())
        return wrong;
    if (!(f.number("spatial_scale") > 0))
        return fmt::format("spatial_scale is {}; it must be above 0", f.number("spatial_scale"));
    return outOf(f, {"output_height", "output_width"}, 1, kMostBins);
}

std::string checkCrop(PluginFields const& f)
{
    return outOf(f, {"crop_height", "crop_width"}, 1, kMostBins);
}

// Height and width are the last two numbers where there are three.
std::string checkSize(PluginFields const& f, size_t count)
{
    std::vector<double> const size = f.numbers("image_size");
    if (!size.empty() && size.size() != count)
        return fmt::format("image_size has {} numbers; it must have {}", size.size(), count);
    for (double v : size)
        if (v < 1)
            return fmt::format("image_size has a side of {}; sides must be above 0", int64_t(v));
    return "";
}

std::string checkPyramid(PluginFields const& f)
{
    for (auto const& wrong :
         {outOf(f, "pooled_size", 1, kMostBins), outOf(f, "sampling_ratio", 0, kMostSamples),
          outOf(f, "roi_coords_transform", -1, 2), outOf(f, "fpn_scale", 1, INT32_MAX), checkSize(f, 2)})
        if (!wrong.empty())
            return wrong;
    return "";
}

std::string checkMultilevelCrop(PluginFields const& f)
{
    std::string const wrong = outOf(f, "pooled_size", 1, kMostBins);
    return wrong.empty() ? checkSize(f, 3) : wrong;
}

} // namespace

} // namespace tw::ops::roi_align

namespace tw::api {

void registerPlugins_roi_align(StandardPlugins& list)
{
    using enum nvinfer1::PluginFieldType;
    namespace roi = ops::roi_align;
    list.push_back({.name = "ROIAlign_TRT",
                    .version = "1",
                    .fields = {{"coordinate_transformation_mode", kINT32, kMay, kOne, 1},
                               {"mode", kINT32, kMay, kOne, 1},
                               {"output_height", kINT32, kMay, kOne, 1},
                               {"output_width", kINT32, kMay, kOne, 1},
                               {"sampling_ratio", kINT32},
                               {"spatial_scale", kFLOAT32, kMay, kOne, 1}},
                    .types = {"TTi>T"},
                    .lower = roi::roiAlign,
                    .check = roi::checkRoiAlign});
    std::vector<FieldSpec> const crop{{"crop_width", kINT32}, {"crop_height", kINT32}};
    list.push_back({.name = "CropAndResize",
                    .version = "1",
                    .interface = ops::plugin::Interface::kExt,
                    .fields = crop,
                    .types = {"TT>T"},
                    .lower = roi::cropAndResize,
                    .check = roi::checkCrop});
    list.push_back({.name = "CropAndResizeDynamic",
                    .version = "1",
                    .fields = crop,
                    .types = {"TT>T"},
                    .lower = roi::cropAndResize,
                    .check = roi::checkCrop});
    list.push_back({.name = "PyramidROIAlign_TRT",
                    .version = "1",
                    .interface = ops::plugin::Interface::kExt,
                    .fields = {{"fpn_scale", kINT32, kMay, kOne, 224},
                               {"pooled_size", kINT32, kMay, kOne, 7},
                               {"image_size", kINT32, kMay, kAny},
                               {"roi_coords_absolute", kINT32, kMay, kOne, 1},
                               {"roi_coords_swap", kINT32},
                               {"roi_coords_plusone", kINT32},
                               {"roi_coords_transform", kINT32, kMay, kOne, 2},
                               {"sampling_ratio", kINT32},
                               {"legacy", kINT32}},
                    .types = {"TTTTT>T"},
                    .lower = roi::pyramid,
                    .check = roi::checkPyramid});
    list.push_back({.name = "MultilevelCropAndResize_TRT",
                    .version = "1",
                    .interface = ops::plugin::Interface::kExt,
                    .fields = {{"pooled_size", kINT32, kMust}, {"image_size", kINT32, kMay, kAny}},
                    .types = {"TTTTTT>T"},
                    .lower = roi::multilevelCrop,
                    .check = roi::checkMultilevelCrop});
}

} // namespace tw::api
