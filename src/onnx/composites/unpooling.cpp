// SPDX-License-Identifier: Apache-2.0
// MaxUnpool, Col2Im, CenterCropPad: elements that go to places of a larger tensor.

#include "importers/common/window.h"
#include "onnx/importer.h"

namespace tw::onnx {

namespace {

using nvinfer1::SliceMode;

ITensor& padded(ImportContext& ctx, ITensor& x, Sizes const& size)
{
    return ctx.slice(x, Sizes(size.size(), Size(0)), size, Sizes(size.size(), Size(1)), SliceMode::kFILL);
}

// Indices count the elements of the whole tensor that the window says; output_shape only adds zeros behind them.
void importMaxUnpool(ImportContext& ctx)
{
    ITensor &x = ctx.tensor(0), &indices = ctx.cast(ctx.tensor(1), DataType::kINT32);
    int const spatial = x.getDimensions().nbDims - 2;
    ctx.check(spatial >= 1, "the input has shape " + describe(x.getDimensions()) + ", it needs spatial dimensions");
    WindowAttrs const window = readWindow(ctx, spatial, {});
    Sizes size = ctx.sizesOf(x);
    Size const count = ctx.product(size);
    for (int i = 0; i < spatial; ++i) {
        size_t const d = size_t(i);
        int64_t const rest = window.kernel[d] - window.before[d] - window.after[d] - window.strides[d];
        size[d + 2] = ctx.add(ctx.mul(size[d + 2], window.strides[d]), rest);
    }
    ITensor& nothing = ctx.expand(ctx.scalar(0, x.getType(), 1), {ctx.product(size)});
    auto& layer = ctx.added(ctx.network().addScatter(nothing, ctx.reshape(indices, Sizes{count}),
                                                     ctx.reshape(x, Sizes{count}), nvinfer1::ScatterMode::kELEMENT));
    ITensor& y = ctx.reshape(ctx.out(layer), size);
    if (!ctx.hasInput(2))
        return ctx.setOutput(0, y);
    Sizes const wanted = ctx.sizesFrom(ctx.input(2));
    if (wanted.size() != size.size())
        ctx.invalid(fmt::format("output_shape has {} sizes for rank {}", wanted.size(), size.size()));
    ctx.setOutput(0, padded(ctx, y, wanted));
}

// Columns [n, c * windows, places] as a deconvolution, whose kernel puts number k of a column at place k of its window.
void importCol2Im(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    std::vector<int64_t> const image = ctx.constantInts(1, "image_shape"), block = ctx.constantInts(2, "block_shape");
    Dims const d = x.getDimensions();
    ctx.check(d.nbDims == 3 && image.size() == 2 && block.size() == 2 && d.d[1] >= 0,
              "images of two dimensions and columns [n, c, l] of known c can be imported, the shape is " + describe(d));
    std::vector<int64_t> const strides = ctx.attrInts("strides", {1, 1}), dilations = ctx.attrInts("dilations", {1, 1});
    std::vector<int64_t> const pads = ctx.attrInts("pads", {0, 0, 0, 0});
    int64_t const window = block[0] * block[1];
    if (block[0] < 1 || block[1] < 1 || window > INT32_MAX || strides.size() != 2 || dilations.size() != 2 ||
        pads.size() != 4 || d.d[1] % window != 0)
        ctx.invalid("block_shape, strides, dilations or pads do not fit the shape " + describe(d));
    std::vector<int64_t> places;
    for (size_t i = 0; i < 2; ++i) {
        if (strides[i] < 1 || dilations[i] < 1)
            ctx.invalid("strides and dilations must be positive");
        int64_t const span = image[i] + pads[i] + pads[i + 2] - dilations[i] * (block[i] - 1) - 1;
        if (span < 0)
            ctx.invalid("the block does not fit into the image");
        places.push_back(span / strides[i] + 1);
    }
    Constant kernel = ctx.newConstant(x.getType(), makeDims({d.d[1], 1, block[0], block[1]}));
    for (int64_t i = 0; i < d.d[1]; ++i)
        ctx.store(kernel, i * window + i % window, 1);
    Sizes const s = ctx.sizesOf(x);
    ITensor& columns = ctx.reshape(x, Sizes{s[0], s[1], places[0], places[1]});
    nvinfer1::Weights const none{x.getType(), nullptr, 0};
    int64_t const channels = d.d[1] / window;
    auto& layer = ctx.added(
        ctx.network().addDeconvolutionNd(columns, int32_t(channels), makeDims(block), kernel.weights(), none));
    layer.setStrideNd(makeDims(strides));
    layer.setDilationNd(makeDims(dilations));
    layer.setNbGroups(int32_t(channels));
    // What the windows leave at the end of the image is zero.
    ITensor& all = ctx.out(layer);
    ctx.setOutput(0, ctx.slice(all, {Size(0), Size(0), Size(pads[0]), Size(pads[1])},
                               {s[0], Size(channels), Size(image[0]), Size(image[1])}, Sizes(4, Size(1)),
                               SliceMode::kFILL));
}

// Each axis cut or filled with zeros on both sides; an odd one goes to the end.
void importCenterCropPad(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    int const rank = x.getDimensions().nbDims;
    Sizes const wanted = ctx.sizesFrom(ctx.input(1));
    std::vector<int> const axes = ctx.hasAttr("axes") ? ctx.axes(ctx.attrInts("axes"), rank) : allAxes(rank);
    if (wanted.size() != axes.size())
        ctx.invalid(fmt::format("{} sizes for {} axes", wanted.size(), axes.size()));
    Sizes size = ctx.sizesOf(x), start(size.size(), Size(0));
    for (size_t i = 0; i < axes.size(); ++i) {
        size_t const a = size_t(axes[i]);
        // floor((have - want) / 2) for a cut, -floor((want - have) / 2) for a fill.
        Size const cut = ctx.max(ctx.sub(size[a], wanted[i]), 0), fill = ctx.max(ctx.sub(wanted[i], size[a]), 0);
        start[a] = ctx.sub(ctx.floorDiv(cut, 2), ctx.floorDiv(fill, 2));
        size[a] = wanted[i];
    }
    ctx.setOutput(0, ctx.slice(x, start, size, Sizes(size.size(), Size(1)), SliceMode::kFILL));
}

} // namespace

void register_composites_unpooling(ImporterMap& map)
{
    map.add("MaxUnpool", importMaxUnpool);
    map.add("Col2Im", importCol2Im);
    map.add("CenterCropPad", importCenterCropPad);
}

} // namespace tw::onnx
