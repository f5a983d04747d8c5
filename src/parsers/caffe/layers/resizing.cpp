// SPDX-License-Identifier: Apache-2.0
// Interp and Upsample, of branches of Caffe.
#include "parsers/caffe/node.h"

namespace tw::caffe {

using nvinfer1::ResizeMode;

namespace {

ITensor& resized(CaffeNode& node, int64_t height, int64_t width, ResizeMode mode)
{
    node.check(height >= 1 && height <= INT32_MAX && width >= 1 && width <= INT32_MAX,
               fmt::format("its output would be {} x {}", height, width));
    ITensor& x = node.atLeast(node.x(), 3);
    Dims d = x.getDimensions();
    Sizes sizes = node.sizesWithBatch(x);
    d.d[d.nbDims - 2] = int32_t(height);
    d.d[d.nbDims - 1] = int32_t(width);
    sizes[sizes.size() - 2] = Size(height);
    sizes[sizes.size() - 1] = Size(width);
    ITensor* const open = node.isImplicit() ? nullptr : &node.asTensor(sizes);
    auto& layer = node.added(node.network().addResize(x));
    if (open)
        layer.setInput(1, *open);
    else
        layer.setOutputDimensions(d);
    layer.setResizeMode(mode);
    if (mode == ResizeMode::kLINEAR)
        layer.setCoordinateTransformation(nvinfer1::ResizeCoordinateTransformation::kALIGN_CORNERS);
    return node.out(layer);
}

// Bilinear, corners on corners: to a size, or shrunk and then zoomed between the pixels.
void importInterp(CaffeNode& node)
{
    node.expect(1, 1);
    auto const& p = node.layer().interp_param();
    node.check(p.pad_beg() == 0 && p.pad_end() == 0, "pad_beg and pad_end must be 0");
    if (p.shrink_factor() < 1 || p.zoom_factor() < 1)
        node.invalid(
            fmt::format("shrink_factor {} and zoom_factor {} must be 1 or above", p.shrink_factor(), p.zoom_factor()));
    Dims const d = node.dims();
    node.check(node.caffeRank(0) == 4, "its input is no image of four dimensions");
    auto const size = [&](int axis, bool has, int32_t given) -> int64_t {
        if (has)
            return given;
        int64_t const shrunk = (d.d[axis] - 1) / p.shrink_factor() + 1;
        return shrunk + (shrunk - 1) * (p.zoom_factor() - 1);
    };
    int const h = d.nbDims - 2;
    node.setTop(
        resized(node, size(h, p.has_height(), p.height()), size(h + 1, p.has_width(), p.width()), ResizeMode::kLINEAR));
}

void importUpsample(CaffeNode& node)
{
    node.check(node.nbInputs() != 2, "its second bottom, a mask of a pooling layer, cannot be imported");
    node.expect(1, 1);
    auto const& p = node.layer().upsample_param();
    node.check(node.caffeRank(0) == 4, "its input is no image of four dimensions");
    Dims const d = node.dims();
    auto const size = [&](int32_t extent, bool has, uint32_t given, bool hasScale, uint32_t scale) {
        return has ? int64_t(given) : extent * int64_t(hasScale ? scale : p.scale());
    };
    node.setTop(resized(node, size(d.d[d.nbDims - 2], p.has_upsample_h(), p.upsample_h(), p.has_scale_h(), p.scale_h()),
                        size(d.d[d.nbDims - 1], p.has_upsample_w(), p.upsample_w(), p.has_scale_w(), p.scale_w()),
                        ResizeMode::kNEAREST));
}

} // namespace

void addResizing(LayerMap& map)
{
    map["Interp"] = importInterp;
    map["Upsample"] = importUpsample;
}

} // namespace tw::caffe
