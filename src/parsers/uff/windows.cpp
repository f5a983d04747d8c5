// SPDX-License-Identifier: Apache-2.0
// Conv, ConvTranspose, Pool, FullyConnected.
#include <algorithm>

#include "parsers/uff/node.h"
#include "parsers/uff/operations.h"
#include "tw_uff.pb.h"

namespace tw::uff {

namespace {

using nvinfer1::PaddingMode;

bool isSame(UffNode const& n)
{
    std::string const padding = n.attrString("implicit_padding", "valid");
    if (padding == "same" || padding == "SAME")
        return true;
    if (padding != "valid" && padding != "VALID" && !padding.empty())
        n.invalid(fmt::format("field 'implicit_padding' is '{}' (allowed: same, valid)", shown(padding)));
    return false;
}

// [h, w] for both ends.
std::vector<int64_t> explicitPadding(UffNode const& n, size_t spatial)
{
    if (n.hasAttr("padding") && n.integers("padding").size() == 2 * spatial)
        n.fail(
            "field 'padding' has a number for each end of each dimension, in an order that is not known; one for each "
            "dimension can be imported");
    return n.window("padding", spatial, 0, 0);
}

template <class Layer>
void setWindow(UffNode const& n, Layer& layer, size_t spatial)
{
    layer.setStrideNd(makeDims(n.window("strides", spatial, 1, 1)));
    if (isSame(n)) {
        layer.setPaddingMode(PaddingMode::kSAME_UPPER);
        return;
    }
    Dims const padding = makeDims(explicitPadding(n, spatial));
    layer.setPrePadding(padding);
    layer.setPostPadding(padding);
}

// Images of two or three spatial dimensions.
Image spatialImage(UffNode& n)
{
    Image const x = n.image(0);
    int const rank = x.tensor.getDimensions().nbDims;
    constexpr int kPlane = 3, kVolume = 4;
    if (rank != kPlane && rank != kVolume)
        n.fail(fmt::format("the input has shape {} without the batch; channels and two or three spatial dimensions are "
                           "needed",
                           describe(x.tensor.getDimensions())));
    return x;
}

// Files have no one name for it: whichever integer has "group" in its name.
int64_t groupsOf(UffNode const& n)
{
    for (auto const& entry : n.message().fields())
        if (entry.key().find("group") != std::string::npos)
            return n.attrInt(entry.key().c_str(), 1);
    return 1;
}

// A kernel of a layer: K, C and the spatial ones.
Constant kernelOf(UffNode& n, int spatial)
{
    return n.canonical(1, "the kernel", allAxes(spatial + 2));
}

Dims spatialOf(Dims const& kernel)
{
    return makeDims({kernel.d + 2, kernel.d + kernel.nbDims});
}

// TensorFlow's kernel of a depthwise convolution [H, W, C, M]: each of C channels gives M maps. The layer's is C M maps of one
// channel each, those of the first channel first.
Constant depthwise(UffNode const& n, Constant const& kernel, int64_t channels)
{
    Constant const byChannel =
        kernel.dims.d[0] == channels && kernel.dims.d[1] != channels ? kernel : n.transposed(kernel, [&] {
            std::vector<int> order = allAxes(kernel.dims.nbDims);
            std::swap(order[0], order[1]);
            return order;
        }());
    Dims dims = byChannel.dims;
    int64_t const maps = int64_t(dims.d[0]) * dims.d[1];
    if (dims.d[0] != channels || maps > INT32_MAX)
        n.invalid(fmt::format("a kernel of shape {} in canonical order does not fit {} groups of one channel",
                              describe(kernel.dims), channels));
    dims.d[0] = int32_t(maps);
    dims.d[1] = 1;
    return n.reshaped(byChannel, dims);
}

} // namespace

void importConv(UffNode& n)
{
    Image const x = spatialImage(n);
    int const spatial = x.tensor.getDimensions().nbDims - 1;
    int64_t const channels = x.tensor.getDimensions().d[0], groups = groupsOf(n);
    Constant kernel = kernelOf(n, spatial);
    if (groups < 1 || channels % groups != 0)
        n.invalid(fmt::format("{} groups do not divide {} channels", groups, channels));
    if (groups > 1 && groups == channels && (kernel.dims.d[0] == channels || kernel.dims.d[1] == channels) &&
        kernel.dims.d[1] != 1)
        kernel = depthwise(n, kernel, channels);
    int64_t const window = volume(spatialOf(kernel.dims));
    int64_t const wanted = int64_t(kernel.dims.d[0]) * (channels / groups) * window;
    if (kernel.count != wanted || window == 0)
        n.invalid(
            fmt::format("kernel weights has count {} but {} was expected: the kernel has shape {} in the order K, C "
                        "and spatial, the input has {} channels in {} groups; is the input registered in the right "
                        "order?",
                        kernel.count, wanted, describe(kernel.dims), channels, groups));
    std::vector<int64_t> const dilation = n.window("dilation", size_t(spatial), 1, 1);
    auto& conv =
        n.added(n.network().addConvolutionNd(x.tensor, kernel.dims.d[0], spatialOf(kernel.dims),
                                             n.weights(kernel).weights(), {n.weights(kernel).type, nullptr, 0}));
    setWindow(n, conv, size_t(spatial));
    conv.setDilationNd(makeDims(dilation));
    conv.setNbGroups(int32_t(groups));
    n.give(n.out(conv), {x.order});
}

namespace {

// What an output of a wanted size takes away from the full one, and adds behind it.
struct Cut
{
    std::vector<int64_t> before, after, extra;
};

std::vector<int64_t> outputSizes(UffNode const& n, Image const& x)
{
    std::vector<int64_t> const shape = n.integersOf(2, "the output shape");
    size_t const spatial = x.order.size() - 1;
    if (shape.size() == spatial)
        return shape;
    if (shape.size() != spatial + 2)
        n.invalid(fmt::format("the output shape has {} entries; {} (spatial) or {} (all) are needed", shape.size(),
                              spatial, spatial + 2));
    std::vector<int64_t> sizes;
    for (size_t i = 1; i < x.order.size(); ++i)
        sizes.push_back(shape[size_t(x.order[i]) + 1]);
    return sizes;
}

Cut cutOf(UffNode const& n, Image const& x, Dims const& kernel)
{
    Dims const in = x.tensor.getDimensions();
    size_t const spatial = x.order.size() - 1;
    std::vector<int64_t> const strides = n.window("strides", spatial, 1, 1), padding = explicitPadding(n, spatial);
    std::vector<int64_t> const wanted = n.has(2) ? outputSizes(n, x) : std::vector<int64_t>();
    Cut cut;
    for (size_t i = 0; i < spatial; ++i) {
        int64_t const size = in.d[i + 1], stride = strides[i], k = kernel.d[i];
        int64_t const full = (size - 1) * stride + k;
        bool const same = isSame(n);
        int64_t const out = !wanted.empty() ? wanted[i]
                            : same          ? size * stride
                                            : std::max(full, size * stride) - 2 * padding[i];
        // As the convolution that this one is the gradient of goes over `out`.
        int64_t const before = same ? std::max<int64_t>((size - 1) * stride + k - out, 0) / 2 : padding[i];
        int64_t const of = same ? (out + stride - 1) / stride : (out + 2 * padding[i] - k) / stride + 1;
        if (out < 1 || out > INT32_MAX || of != size || (!same && out + 2 * padding[i] < k))
            n.invalid(
                fmt::format("an output of {} does not belong to an input of {} along spatial dimension {} (kernel {}, "
                            "stride {})",
                            out, size, i, k, stride));
        int64_t const after = full - before - out;
        cut.before.push_back(before);
        cut.after.push_back(std::max<int64_t>(after, 0));
        cut.extra.push_back(std::max<int64_t>(-after, 0));
    }
    return cut;
}

} // namespace

void importConvTranspose(UffNode& n)
{
    Image const x = spatialImage(n);
    int const spatial = x.tensor.getDimensions().nbDims - 1;
    Constant const kernel = kernelOf(n, spatial);
    int64_t const channels = x.tensor.getDimensions().d[0];
    n.check(groupsOf(n) == 1, "groups other than 1 cannot be imported");
    for (int64_t d : n.window("dilation", size_t(spatial), 1, 1))
        n.check(d == 1, "a dilation other than 1 cannot be imported");
    if (kernel.dims.d[0] != channels || kernel.count == 0)
        n.invalid(
            fmt::format("kernel weights has count {} but {} was expected: the kernel has shape {}, its input channels "
                        "first, the input has {} channels",
                        kernel.count, channels * (kernel.dims.d[0] ? kernel.count / kernel.dims.d[0] : 0),
                        describe(kernel.dims), channels));
    Cut const cut = cutOf(n, x, spatialOf(kernel.dims));
    Constant const weights = n.weights(kernel);
    auto& deconv = n.added(n.network().addDeconvolutionNd(x.tensor, kernel.dims.d[1], spatialOf(kernel.dims),
                                                          weights.weights(), {weights.type, nullptr, 0}));
    deconv.setStrideNd(makeDims(n.window("strides", size_t(spatial), 1, 1)));
    deconv.setPrePadding(makeDims(cut.before));
    deconv.setPostPadding(makeDims(cut.after));
    ITensor* y = &n.out(deconv);
    if (std::ranges::any_of(cut.extra, [](int64_t e) { return e > 0; })) {
        Sizes sizes = n.sizesOf(*y);
        for (int i = 0; i < spatial; ++i)
            sizes[size_t(i) + 1] = n.add(sizes[size_t(i) + 1], cut.extra[size_t(i)]);
        y = &n.slice(*y, Sizes(sizes.size(), Size(0)), sizes, Sizes(sizes.size(), Size(1)), nvinfer1::SliceMode::kFILL);
    }
    n.give(*y, {x.order});
}

void importPool(UffNode& n)
{
    std::string const function = n.requireText("func");
    if (function != "max" && function != "avg")
        n.fail(fmt::format("field 'func' is '{}' (allowed: max, avg)", function));
    Image const x = spatialImage(n);
    size_t const spatial = size_t(x.tensor.getDimensions().nbDims - 1);
    if (!n.hasAttr("kernel"))
        n.invalid("field 'kernel' is missing");
    bool const isMax = function == "max";
    auto& pool = n.added(n.network().addPoolingNd(x.tensor,
                                                  isMax ? nvinfer1::PoolingType::kMAX : nvinfer1::PoolingType::kAVERAGE,
                                                  makeDims(n.window("kernel", spatial, 1, 1))));
    setWindow(n, pool, spatial);
    if (!isMax)
        pool.setAverageCountExcludesPadding(isSame(n)); // explicit padding was a Pad of zeros, which count
    n.give(n.out(pool), {x.order});
}

void importFullyConnected(UffNode& n)
{
    for (char const* field : {"transpose_a", "transpose_b"})
        n.check(n.attrInt(field, 0) == 0, fmt::format("field '{}' cannot be imported", field));
    Constant const matrix = n.canonical(1, "the weights", {1, 0}); // [outputs, inputs]
    ITensor* x = &n.inGraphOrder(0);
    Dims const d = x->getDimensions();
    int64_t const inputs = volume(d);
    if (inputs != matrix.dims.d[1] || matrix.count == 0)
        n.invalid(fmt::format("kernel weights has count {} but {} was expected: the weights are {} x {}, the input has "
                              "shape {}",
                              matrix.count, matrix.dims.d[0] * inputs, matrix.dims.d[1], matrix.dims.d[0],
                              describe(d)));
    Constant const weights = n.weights(matrix);
    x = &n.reshape(*x, Dims{3, {int32_t(inputs), 1, 1}});
    ITensor& y = n.out(
        n.added(n.network().addFullyConnected(*x, matrix.dims.d[0], weights.weights(), {weights.type, nullptr, 0})));
    n.give(n.reshape(y, Dims{1, {matrix.dims.d[0]}}));
}

} // namespace tw::uff
