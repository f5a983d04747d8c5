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

// Images for a window of two or three dimensions. More dimensions may stand in front where the graph has channels first: they were
// the batch's until a tool took the Reshapes away round a layer of each region or step.
Image spatialImage(UffNode& n, size_t spatial)
{
    constexpr size_t kPlane = 2, kVolume = 3;
    if (spatial != kPlane && spatial != kVolume)
        n.fail(fmt::format("the window has {} dimensions (allowed: 2, 3)", spatial));
    Image const x = n.image(0);
    size_t const rank = x.order().size();
    if (rank < spatial + 1 || (rank > spatial + 1 && !isInOrder(x.order())))
        n.fail(fmt::format(
            "Order size is not matching the number dimensions of TensorRT: the input has shape {} without the "
            "batch; channels and {} spatial dimensions are needed",
            describe(x.tensor.getDimensions()), spatial));
    return x;
}

int channelsOf(Image const& x, int spatial)
{
    Dims const d = x.tensor.getDimensions();
    return d.d[d.nbDims - spatial - 1];
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
Constant kernelOf(UffNode& n)
{
    return n.canonical(1, "the kernel", allAxes(n.constantOf(1, "the kernel").dims.nbDims));
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
    Constant kernel = kernelOf(n);
    int const spatial = kernel.dims.nbDims - 2;
    Image const x = spatialImage(n, size_t(spatial));
    int64_t const channels = channelsOf(x, spatial), groups = groupsOf(n);
    if (groups < 1 || channels % groups != 0)
        n.invalid(fmt::format("{} groups do not divide {} channels", groups, channels));
    if (groups > 1 && groups == channels && (kernel.dims.d[0] == channels || kernel.dims.d[1] == channels) &&
        kernel.dims.d[1] != 1)
        kernel = depthwise(n, kernel, channels);
    int64_t const ofChannel = kernel.dims.d[1] > 0 ? kernel.count / kernel.dims.d[1] : 0;
    int64_t const wanted = ofChannel * (channels / groups);
    if (kernel.count != wanted || kernel.count == 0)
        n.invalid(
            fmt::format("kernel weights has count {} but {} was expected: the kernel has shape {} in the order K, C "
                        "and spatial, the input has {} channels in {} groups; is the input registered in the right "
                        "order?",
                        kernel.count, wanted, describe(kernel.dims), channels, groups));
    std::vector<int64_t> const dilation = n.window("dilation", size_t(spatial), 1, 1);
    Constant const weights = n.weights(kernel);
    auto& conv = n.added(n.network().addConvolutionNd(x.tensor, kernel.dims.d[0], spatialOf(kernel.dims),
                                                      weights.weights(), {weights.type, nullptr, 0}));
    setWindow(n, conv, size_t(spatial));
    conv.setDilationNd(makeDims(dilation));
    conv.setNbGroups(int32_t(groups));
    n.give(n.out(conv), x.layout);
}

namespace {

// What an output of a wanted size takes away from the full one, and adds behind it.
struct Cut
{
    std::vector<int64_t> before, after, extra;
};

std::vector<int64_t> outputSizes(UffNode const& n, Image const& x, size_t spatial)
{
    std::vector<int64_t> const shape = n.integersOf(2, "the output shape");
    size_t const rank = x.order().size();
    if (shape.size() == spatial)
        return shape;
    if (shape.size() != rank + 1)
        n.invalid(fmt::format("the output shape has {} entries; {} (spatial) or {} (all) are needed", shape.size(),
                              spatial, rank + 1));
    std::vector<int64_t> sizes;
    for (size_t i = rank - spatial; i < rank; ++i)
        sizes.push_back(shape[size_t(x.order()[i]) + 1]);
    return sizes;
}

Cut cutOf(UffNode const& n, Image const& x, Dims const& kernel)
{
    Dims const in = x.tensor.getDimensions();
    size_t const spatial = size_t(kernel.nbDims), first = x.order().size() - spatial;
    std::vector<int64_t> const strides = n.window("strides", spatial, 1, 1), padding = explicitPadding(n, spatial);
    std::vector<int64_t> const wanted = n.has(2) ? outputSizes(n, x, spatial) : std::vector<int64_t>();
    Cut cut;
    for (size_t i = 0; i < spatial; ++i) {
        int64_t const size = in.d[i + first], stride = strides[i], k = kernel.d[i];
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
    Constant const kernel = kernelOf(n);
    int const spatial = kernel.dims.nbDims - 2;
    Image const x = spatialImage(n, size_t(spatial));
    int64_t const channels = channelsOf(x, spatial);
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
            sizes[sizes.size() - size_t(spatial - i)] =
                n.add(sizes[sizes.size() - size_t(spatial - i)], cut.extra[size_t(i)]);
        y = &n.slice(*y, Sizes(sizes.size(), Size(0)), sizes, Sizes(sizes.size(), Size(1)), nvinfer1::SliceMode::kFILL);
    }
    n.give(*y, x.layout);
}

void importPool(UffNode& n)
{
    std::string const function = n.requireText("func");
    if (function != "max" && function != "avg")
        n.fail(fmt::format("field 'func' is '{}' (allowed: max, avg)", function));
    size_t const spatial = n.integers("kernel").size();
    Image const x = spatialImage(n, spatial);
    bool const isMax = function == "max";
    auto& pool = n.added(n.network().addPoolingNd(x.tensor,
                                                  isMax ? nvinfer1::PoolingType::kMAX : nvinfer1::PoolingType::kAVERAGE,
                                                  makeDims(n.window("kernel", spatial, 1, 1))));
    setWindow(n, pool, spatial);
    if (!isMax)
        pool.setAverageCountExcludesPadding(isSame(n)); // explicit padding was a Pad of zeros, which count
    n.give(n.out(pool), x.layout);
}

void importFullyConnected(UffNode& n)
{
    for (char const* field : {"transpose_a", "transpose_b"})
        n.check(n.attrInt(field, 0) == 0, fmt::format("field '{}' cannot be imported", field));
    Constant const matrix = n.canonical(1, "the weights", {1, 0}); // [outputs, inputs]
    ITensor* x = &n.inGraphOrder(0);
    Dims const d = x->getDimensions();
    int64_t const inputs = matrix.dims.d[1];
    // As many of the last dimensions as have the inputs: all, as a rule.
    int first = 0;
    while (first < d.nbDims && volume(makeDims({d.d + first, d.d + d.nbDims})) != inputs)
        ++first;
    if (first == d.nbDims || matrix.count == 0)
        n.invalid(fmt::format("kernel weights has count {} but {} was expected: the weights are {} x {}, the input has "
                              "shape {}",
                              matrix.count, matrix.dims.d[0] * std::min<int64_t>(volume(d), INT32_MAX), inputs,
                              matrix.dims.d[0], describe(d)));
    std::vector<int64_t> shape(d.d, d.d + first);
    shape.insert(shape.end(), {inputs, 1, 1});
    n.check(shape.size() < size_t(Dims::MAX_DIMS), "the input has too many dimensions");
    Constant const weights = n.weights(matrix);
    x = &n.reshape(*x, makeDims(shape));
    ITensor& y = n.out(
        n.added(n.network().addFullyConnected(*x, matrix.dims.d[0], weights.weights(), {weights.type, nullptr, 0})));
    n.give(y, {.order = allAxes(first + 1), .units = 2});
}

} // namespace tw::uff
