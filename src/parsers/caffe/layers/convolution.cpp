// SPDX-License-Identifier: Apache-2.0
// Convolution, Deconvolution, InnerProduct, Embed.
#include <cmath>

#include "parsers/caffe/node.h"

namespace tw::caffe {

using importers::describe;
using importers::volume;
using nvinfer1::DimsHW;
using tw_caffe::ConvolutionParameter;

namespace {

std::optional<Constant> biasOf(CaffeNode& node, bool isWanted, int32_t outputs)
{
    constexpr double kMost = 0.01; // random ones lie within
    if (!isWanted)
        return {};
    return node.optionalBlob(1, true, "bias", Dims{1, {outputs}}, Random::uniform(-kMost, kMost));
}

// Two numbers, of height and width: given by name, or as a list of two, of one for both, or of none.
template <class List>
DimsHW pairOf(CaffeNode const& node, char const* what, List const& list, bool hasH, uint32_t h, bool hasW, uint32_t w,
              uint32_t absent, uint32_t least)
{
    if (list.size() > 2)
        node.invalid(fmt::format("{} has {} numbers; one or two, of height and width, are read", what, list.size()));
    uint32_t const first = list.size() > 0 ? list[0] : absent, second = list.size() > 1 ? list[1] : first;
    return DimsHW(asInt(node, hasH ? h : first, what, least), asInt(node, hasW ? w : second, what, least));
}

struct Window
{
    DimsHW kernel, stride, pad, dilation;
};

#define TW_PAIR(list, name, absent, least)                                                                             \
    pairOf(node, #list, p.list(), p.has_##name##_h(), p.name##_h(), p.has_##name##_w(), p.name##_w(), absent, least)

Window windowOf(CaffeNode const& node, ConvolutionParameter const& p)
{
    return {TW_PAIR(kernel_size, kernel, 0, 1), TW_PAIR(stride, stride, 1, 1), TW_PAIR(pad, pad, 0, 0),
            TW_PAIR(dilation, dilation, 1, 1)};
}
#undef TW_PAIR

// A layer for images, of which x has at least three dimensions behind the batch.
ITensor& imageOf(CaffeNode& node)
{
    return node.atLeast(node.x(), 3);
}

int32_t groupsOf(CaffeNode const& node, uint32_t groups, int32_t in, int32_t outputs)
{
    int32_t const g = asInt(node, groups, "group", 1);
    if (in % g || outputs % g)
        node.invalid(fmt::format("group {} does not divide the {} input and {} output channels", g, in, outputs));
    return g;
}

void importConvolution(CaffeNode& node, bool isDepthwise)
{
    node.expect(1, 1);
    ConvolutionParameter const& p = node.layer().convolution_param();
    Window const window = windowOf(node, p);
    ITensor& x = imageOf(node);
    Dims const d = x.getDimensions();
    int32_t const in = d.d[d.nbDims - 3];
    int32_t const outputs = p.num_output() == 0 && isDepthwise ? in : asInt(node, p.num_output(), "num_output", 1);
    int32_t const groups = groupsOf(node, isDepthwise && !p.has_group() ? uint32_t(in) : p.group(), in, outputs);
    Dims const shape{4, {outputs, in / groups, window.kernel.h(), window.kernel.w()}};
    double const fan = double(window.kernel.h()) * window.kernel.w() * std::sqrt(double(in) / groups * outputs);
    Constant const kernel = node.blob(0, "kernel", shape, Random::normal(1 / std::sqrt(fan)));
    std::optional<Constant> const bias = biasOf(node, p.bias_term(), outputs);
    auto& conv =
        node.added(node.network().addConvolutionNd(x, outputs, window.kernel, node.stored(kernel), node.stored(bias)));
    conv.setStrideNd(window.stride);
    conv.setPaddingNd(window.pad);
    conv.setDilationNd(window.dilation);
    conv.setNbGroups(groups);
    conv.setPaddingMode(nvinfer1::PaddingMode::kCAFFE_ROUND_DOWN);
    node.setTop(node.out(conv));
}

void importDeconvolution(CaffeNode& node)
{
    node.expect(1, 1);
    ConvolutionParameter const& p = node.layer().convolution_param();
    Window const window = windowOf(node, p);
    node.check(
        window.dilation.h() == 1 && window.dilation.w() == 1,
        fmt::format("dilation is {} x {}; a deconvolution has none but 1", window.dilation.h(), window.dilation.w()));
    ITensor& x = imageOf(node);
    Dims const d = x.getDimensions();
    int32_t const in = d.d[d.nbDims - 3], outputs = asInt(node, p.num_output(), "num_output", 1);
    int32_t const groups = groupsOf(node, p.group(), in, outputs);
    Dims const shape{4, {in, outputs / groups, window.kernel.h(), window.kernel.w()}};
    double const fan = double(window.kernel.h()) * window.kernel.w() * std::sqrt(double(in) * outputs);
    Constant const kernel = node.blob(0, "kernel", shape, Random::normal(1 / std::sqrt(fan)));
    std::optional<Constant> const bias = biasOf(node, p.bias_term(), outputs);
    auto& deconv = node.added(
        node.network().addDeconvolutionNd(x, outputs, window.kernel, node.stored(kernel), node.stored(bias)));
    deconv.setStrideNd(window.stride);
    deconv.setPaddingNd(window.pad);
    deconv.setNbGroups(groups);
    deconv.setPaddingMode(nvinfer1::PaddingMode::kCAFFE_ROUND_DOWN);
    node.setTop(node.out(deconv));
}

// [a, b] as [b, a].
Constant turned(CaffeNode& node, Constant const& c)
{
    int32_t const rows = c.dims.d[0], columns = c.dims.d[1];
    Constant t = node.newConstant(DataType::kFLOAT, Dims{2, {columns, rows}});
    auto const* const from = static_cast<float const*>(c.values);
    auto* const to = static_cast<float*>(const_cast<void*>(t.values));
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t k = 0; k < columns; ++k)
            to[k * rows + i] = from[i * columns + k];
    return t;
}

void importInnerProduct(CaffeNode& node)
{
    node.expect(1, 1);
    auto const& p = node.layer().inner_product_param();
    int32_t const outputs = asInt(node, p.num_output(), "num_output", 1);
    int const rank = node.caffeRank(0);
    // What is multiplied begins here; of five dimensions, regions of interest, the last three are, as in 8.5, and stay three.
    bool const isOfRegions = !p.has_axis() && rank == 5;
    int const axis = isOfRegions ? 2 : node.axis(p.axis(), rank);
    int const kept = axis - node.shift();
    node.check(kept >= 0, "axis 0 is the batch, which a network with an implicit batch dimension cannot multiply");
    ITensor* x = &node.x();
    Dims const d = x->getDimensions();
    Dims behind{0, {}};
    for (int i = kept; i < d.nbDims; ++i)
        behind.d[behind.nbDims++] = d.d[i];
    int64_t const in = volume(behind);
    node.check(in >= 1 && in <= INT32_MAX,
               fmt::format("its input of shape {} has {} elements behind axis {}", describe(d), in, axis));
    if (behind.nbDims != 3)
        x = &node.shaped(*x, kept, {in, 1, 1});
    Random const random = Random::normal(1 / std::sqrt(double(in) * outputs));
    Constant kernel = p.transpose() ? turned(node, node.blob(0, "weights", Dims{2, {int32_t(in), outputs}}, random))
                                    : node.blob(0, "weights", Dims{2, {outputs, int32_t(in)}}, random);
    std::optional<Constant> const bias = biasOf(node, p.bias_term(), outputs);
    auto& product = node.added(node.network().addFullyConnected(*x, outputs, node.stored(kernel), node.stored(bias)));
    node.setTop(0, node.out(product), isOfRegions ? rank : axis + 1);
}

// Rows of a table, by numbers that come as floats.
void importEmbed(CaffeNode& node)
{
    node.expect(1, 1);
    auto const& p = node.layer().embed_param();
    node.check(!node.isImplicit(), "its table has no batch; make the network with "
                                   "NetworkDefinitionCreationFlag::kEXPLICIT_BATCH");
    int32_t const outputs = asInt(node, p.num_output(), "num_output", 1),
                  rows = asInt(node, p.input_dim(), "input_dim", 1);
    Constant const table =
        node.blob(0, "weights", Dims{2, {rows, outputs}}, Random::normal(1 / std::sqrt(double(rows) * outputs)));
    std::optional<Constant> const bias = biasOf(node, p.bias_term(), outputs);
    ITensor& numbers = node.cast(node.x(), DataType::kINT32);
    ITensor* y = &node.out(node.added(node.network().addGather(node.asTensor(importers::Value(table)), numbers, 0)));
    if (bias)
        y = &node.elementwise(*y, node.along(*y, y->getDimensions().nbDims - 1, *bias),
                              nvinfer1::ElementWiseOperation::kSUM);
    node.setTop(0, *y, y->getDimensions().nbDims);
}

} // namespace

void addConvolutions(LayerMap& map)
{
    map["Convolution"] = [](CaffeNode& node) { importConvolution(node, false); };
    map["ConvolutionDepthwise"] = [](CaffeNode& node) { importConvolution(node, true); };
    map["DepthwiseConvolution"] = map["ConvolutionDepthwise"];
    map["Deconvolution"] = importDeconvolution;
    map["InnerProduct"] = importInnerProduct;
    map["Embed"] = importEmbed;
}

} // namespace tw::caffe
