// SPDX-License-Identifier: Apache-2.0
// RoiAlign, AffineGrid: points of images.
#include <iterator>

#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using Op = nvinfer1::ElementWiseOperation;

// The plugin ROIAlign_TRT: libnvinfer finds its creator under this namespace, whether or not it was registered.
void importRoiAlign(ImportContext& ctx)
{
    using nvinfer1::PluginField;
    using enum nvinfer1::PluginFieldType;
    ITensor &x = ctx.tensor(0), &rois = ctx.tensor(1);
    if (x.getDimensions().nbDims != 4 || rois.getDimensions().nbDims != 2)
        ctx.invalid("the data has shape " + describe(x.getDimensions()) + " and the boxes " +
                    describe(rois.getDimensions()) + "; ranks 4 and 2 are needed");
    auto const number = [&](char const* name, int64_t absent, int64_t least, int64_t most) {
        int64_t const v = ctx.attrInt(name, absent);
        ctx.check(v >= least && v <= most, fmt::format("{} is {}; {} to {} can be imported", name, v, least, most));
        return int32_t(v);
    };
    auto const choice = [&](char const* name, char const* absent, char const* none, char const* one) {
        std::string const text = ctx.attrString(name, absent);
        if (text != none && text != one)
            ctx.invalid(std::string(name) + " '" + text + "' is unknown (allowed: " + none + ", " + one + ")");
        return int32_t(text == one);
    };
    int32_t const rows = number("output_height", 1, 1, 4096), columns = number("output_width", 1, 1, 4096);
    int32_t const samples = number("sampling_ratio", 0, 0, 256), isMean = choice("mode", "avg", "max", "avg");
    int32_t const isHalfPixel =
        choice("coordinate_transformation_mode", ctx.opset() < 16 ? "output_half_pixel" : "half_pixel",
               "output_half_pixel", "half_pixel");
    float const scale = float(ctx.attrFloat("spatial_scale", 1));
    PluginField const fields[] = {{"coordinate_transformation_mode", &isHalfPixel, kINT32, 1},
                                  {"mode", &isMean, kINT32, 1},
                                  {"output_height", &rows, kINT32, 1},
                                  {"output_width", &columns, kINT32, 1},
                                  {"sampling_ratio", &samples, kINT32, 1},
                                  {"spatial_scale", &scale, kFLOAT32, 1}};
    ITensor* const inputs[] = {&x, &ctx.cast(rois, x.getType()), &ctx.cast(ctx.tensor(2), DataType::kINT32)};
    ctx.setOutput(0, standardPlugin(ctx, "ROIAlign_TRT", fields, inputs));
}

// Pixel i of `count`: from -1 to 1, at the centres of the outer pixels or at their edges; 0 for one pixel.
ITensor& coordinates(ImportContext& ctx, Size const& count, bool alignCorners)
{
    Size const last = ctx.sub(count, 1);
    auto number = [&](Size const& s) -> ITensor& { return ctx.cast(ctx.asTensor(s), DataType::kFLOAT); };
    ITensor& i = ctx.cast(positions(ctx, count), DataType::kFLOAT);
    ITensor& twice = ctx.elementwise(i, ctx.scalarLike(2, i), Op::kPROD);
    ITensor& moved = ctx.elementwise(twice, number(last), Op::kSUB);
    return ctx.elementwise(moved, number(alignCorners ? ctx.max(last, 1) : count), Op::kDIV);
}

// grid[n, i, j] = theta[n] (x_j, y_i, 1); of volumes grid[n, k, i, j] = theta[n] (x_j, y_i, z_k, 1)
void importAffineGrid(ImportContext& ctx)
{
    ITensor& theta = ctx.tensor(0);
    Sizes const size = ctx.sizesFrom(ctx.input(1));
    int const spatial = int(size.size()) - 2;
    if ((spatial != 2 && spatial != 3) || theta.getDimensions().nbDims != 3)
        ctx.invalid(fmt::format("there are {} sizes, and theta has shape {}; 4 and [n, 2, 3] belong together, 5 and "
                                "[n, 3, 4]",
                                size.size(), describe(theta.getDimensions())));
    bool const alignCorners = ctx.attrInt("align_corners", 0) != 0;
    Sizes extents(size.begin() + 2, size.end()), each = extents, grid = extents;
    each.emplace_back(1);
    grid.insert(grid.begin(), size[0]);
    grid.emplace_back(spatial);
    std::vector<ITensor*> parts; // the last axis first
    for (int axis = spatial - 1; axis >= 0; --axis) {
        std::vector<int> others = allAxes(spatial + 1);
        std::erase(others, axis);
        ITensor& along = ctx.unsqueeze(coordinates(ctx, extents[size_t(axis)], alignCorners), others);
        parts.push_back(&ctx.expand(along, each));
    }
    parts.push_back(&ctx.expand(ctx.scalar(1, DataType::kFLOAT, spatial + 1), each));
    ITensor& points = ctx.reshape(ctx.concat(parts, spatial), Sizes{Size(1), ctx.product(extents), Size(spatial + 1)});
    ITensor& y = ctx.matmul(ctx.cast(points, theta.getType()), theta, false, true);
    ctx.setOutput(0, ctx.reshape(y, grid));
}

} // namespace

void register_composites_regions_of_images(ImporterMap& map)
{
    map.add("RoiAlign", importRoiAlign);
    map.add("AffineGrid", importAffineGrid);
}

} // namespace tw::onnx
