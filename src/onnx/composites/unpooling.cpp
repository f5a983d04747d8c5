// SPDX-License-Identifier: Apache-2.0
// MaxUnpool, Col2Im, CenterCropPad: elements that go to places of a larger tensor.

#include <algorithm>

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

// Columns [n, c * windows, places] as a deconvolution, whose kernel puts number k of a column at place k of its window. One
// dimension counts as two.
void importCol2Im(ImportContext& ctx)
{
    ITensor& x = ctx.tensor(0);
    std::vector<int64_t> image = ctx.constantInts(1, "image_shape"), block = ctx.constantInts(2, "block_shape");
    Dims const d = x.getDimensions();
    size_t const n = image.size();
    ctx.check(
        d.nbDims == 3 && n >= 1 && n <= 3 && block.size() == n && d.d[1] >= 0,
        fmt::format("images of 1 to 3 dimensions and columns [n, c, l] of known c can be imported; the shape is {}, of "
                    "images of {} dimensions and blocks of {}",
                    describe(d), n, block.size()));
    std::vector<int64_t> const ones(n, 1);
    std::vector<int64_t> strides = ctx.attrInts("strides", ones), dilations = ctx.attrInts("dilations", ones);
    std::vector<int64_t> pads = ctx.attrInts("pads", std::vector<int64_t>(2 * n, 0));
    if (strides.size() != n || dilations.size() != n || pads.size() != 2 * n)
        ctx.invalid(fmt::format("strides, dilations or pads are not those of {} dimensions", n));
    auto const isSmall = [](int64_t v) { return v >= 0 && v <= INT32_MAX; };
    for (auto const* list : {&image, &block, &strides, &dilations, &pads})
        if (!std::ranges::all_of(*list, isSmall))
            ctx.invalid("image_shape, block_shape, strides, dilations or pads hold a number below 0 or above INT32");
    if (n == 1) {
        for (auto* list : {&image, &block, &strides, &dilations})
            list->insert(list->begin(), 1);
        pads = {0, pads[0], 0, pads[1]};
    }
    size_t const spatial = block.size();
    int64_t window = 1;
    for (int64_t b : block)
        if (b < 1 || __builtin_mul_overflow(window, b, &window) || window > INT32_MAX)
            ctx.invalid("block_shape holds a number below 1, or too many");
    if (d.d[1] % window != 0)
        ctx.invalid(fmt::format("block_shape of {} numbers does not fit the shape {}", window, describe(d)));
    Sizes const s = ctx.sizesOf(x);
    int64_t const channels = d.d[1] / window;
    Sizes places{s[0], s[1]}, start{Size(0), Size(0)}, size{s[0], Size(channels)};
    for (size_t i = 0; i < spatial; ++i) {
        if (strides[i] < 1 || dilations[i] < 1)
            ctx.invalid("strides and dilations must be positive");
        int64_t const span = image[i] + pads[i] + pads[i + spatial] - dilations[i] * (block[i] - 1) - 1;
        if (span < 0)
            ctx.invalid("the block does not fit into the image");
        places.emplace_back(span / strides[i] + 1);
        start.emplace_back(pads[i]);
        size.emplace_back(image[i]);
    }
    std::vector<int64_t> kernelDims{d.d[1], 1};
    kernelDims.insert(kernelDims.end(), block.begin(), block.end());
    Constant kernel = ctx.newConstant(x.getType(), makeDims(kernelDims));
    for (int64_t i = 0; i < d.d[1]; ++i)
        ctx.store(kernel, i * window + i % window, 1);
    ITensor& columns = ctx.reshape(x, places);
    nvinfer1::Weights const none{x.getType(), nullptr, 0};
    auto& layer = ctx.added(
        ctx.network().addDeconvolutionNd(columns, int32_t(channels), makeDims(block), kernel.weights(), none));
    layer.setStrideNd(makeDims(strides));
    layer.setDilationNd(makeDims(dilations));
    layer.setNbGroups(int32_t(channels));
    // What the windows leave at the end of the image is zero.
    ITensor& y = ctx.slice(ctx.out(layer), start, size, Sizes(size.size(), Size(1)), SliceMode::kFILL);
    ctx.setOutput(0, n == 1 ? ctx.squeeze(y, {2}) : y);
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
