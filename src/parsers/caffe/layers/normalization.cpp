// SPDX-License-Identifier: Apache-2.0
// BatchNorm, Scale, Bias, LRN, MVN.
#include <cmath>

#include "parsers/caffe/node.h"

namespace tw::caffe {

using importers::describe;
using nvinfer1::ElementWiseOperation;
using nvinfer1::ReduceOperation;
using nvinfer1::UnaryOperation;

namespace {

// Caffe's own form: mean, variance and a factor that both are divided by. NVIDIA's: mean, variance, a factor that says nothing,
// gamma, beta.
void importBatchNorm(CaffeNode& node)
{
    node.expect(1, 1);
    int const axis = node.channelAxis();
    Dims const channels{1, {node.dims().d[axis]}};
    constexpr int kBlobsOfNvidia = 5;
    bool const isNvidia = !node.source().isRandom() && node.nbBlobs() >= kBlobsOfNvidia;
    std::vector<float> const mean = node.blob(0, "mean", channels, Random::uniform(-0.01, 0.01)).floats(),
                             variance = node.blob(1, "variance", channels, Random::uniform(0.9, 1.1)).floats();
    double factor = 1;
    if (!isNvidia) {
        factor = node.blob(2, "factor", Dims{1, {1}}, Random::uniform(0.99, 1.01)).floatAt(0);
        node.check(factor != 0, "the factor (blob 2) is 0: no mean and variance were taken in training");
        factor = 1 / factor;
    }
    std::vector<float> scale(mean.size()), shift(mean.size());
    double const eps = node.layer().batch_norm_param().eps();
    for (size_t i = 0; i < mean.size(); ++i) {
        double const s = 1 / std::sqrt(double(variance[i]) * factor + eps);
        node.check(std::isfinite(s),
                   fmt::format("channel {} has a variance of {}; with eps {} it must be above 0", i, variance[i], eps));
        scale[i] = float(s);
        shift[i] = float(-double(mean[i]) * factor * s);
    }
    if (isNvidia) {
        std::vector<float> const gamma = node.blob(3, "gamma", channels, Random::uniform(1, 1)).floats(),
                                 beta = node.blob(4, "beta", channels, Random::uniform(0, 0)).floats();
        for (size_t i = 0; i < mean.size(); ++i) {
            scale[i] *= gamma[i];
            shift[i] = shift[i] * gamma[i] + beta[i];
        }
    }
    Constant const scales = node.floatConstant(scale, channels), shifts = node.floatConstant(shift, channels);
    node.setTop(node.scaled(node.x(), axis, &scales, &shifts));
}

// The second bottom, whose dimensions are those of the first from an axis on, in dimensions that broadcast.
ITensor& alignedBottom(CaffeNode& node, int axis)
{
    Dims const d = node.dims(), given = node.dims(1);
    int const at = node.axis(axis, node.caffeRank(0)), rank = node.caffeRank(1);
    if (at + rank > node.caffeRank(0))
        node.invalid(fmt::format("bottom 1 of shape {} does not fit bottom 0 of shape {} from axis {} on",
                                 describe(given), describe(d), axis));
    if (at == 0) // with the batch
        return node.shaped(node.x(1), std::min(given.nbDims, d.nbDims),
                           std::vector<int64_t>(size_t(std::max(d.nbDims - given.nbDims, 0)), 1));
    node.check(!node.isImplicit(), fmt::format("bottom 1 has no batch, since axis is {}; in a network with an implicit "
                                               "batch dimension axis must be 0",
                                               axis));
    std::vector<int64_t> shape(size_t(d.nbDims), 1);
    for (int i = 0; i < rank; ++i)
        shape[size_t(at + i)] = given.d[i];
    return node.shaped(node.x(1), 0, shape);
}

// A blob whose dimensions are those of x from an axis on, as a tensor that broadcasts.
ITensor& alignedBlob(CaffeNode& node, Constant const& c, int first, int count)
{
    Dims d = node.dims();
    for (int i = 0; i < d.nbDims; ++i)
        if (i < first || i >= first + count)
            d.d[i] = 1;
    Constant shaped = c;
    shaped.dims = d;
    return node.asTensor(importers::Value(shaped));
}

// x scale + bias, of which each may be missing: blobs, or a second bottom for the first of them.
void importScale(CaffeNode& node, bool hasScale, int wantedAxis, int nbAxes, bool wantsBias)
{
    if (node.nbInputs() != 2)
        node.expect(1, 1);
    int const rank = node.caffeRank(0);
    if (node.nbInputs() == 2) {
        ITensor& y = node.elementwise(node.x(), alignedBottom(node, wantedAxis),
                                      hasScale ? ElementWiseOperation::kPROD : ElementWiseOperation::kSUM);
        node.check(!hasScale || (!wantsBias && node.nbBlobs() == 0),
                   "a bias beside a second bottom cannot be imported; put a Bias layer behind");
        return node.setTop(y);
    }
    int const axis = node.axis(wantedAxis, rank), count = nbAxes < 0 ? rank - axis : nbAxes;
    if (count > rank - axis)
        node.invalid(fmt::format("num_axes {} from axis {} on is too many for {} dimensions", nbAxes, axis, rank));
    int const first = count > 0 ? node.axisOf(axis) : 0;
    Dims const d = node.dims();
    Dims shape{0, {}};
    for (int i = first; i < first + count; ++i)
        shape.d[shape.nbDims++] = d.d[i];
    if (count == 0)
        shape = Dims{1, {1}};
    std::optional<Constant> scale;
    if (hasScale)
        scale = node.blob(0, "scale", shape, Random::uniform(0.9, 1.1));
    int const at = hasScale ? 1 : 0;
    std::optional<Constant> const bias = node.optionalBlob(at, wantsBias, "bias", shape, Random::uniform(-0.01, 0.01));
    if (count == 1)
        return node.setTop(node.scaled(node.x(), first, scale ? &*scale : nullptr, bias ? &*bias : nullptr));
    ITensor* y = &node.x();
    if (scale)
        y = &node.elementwise(*y, alignedBlob(node, *scale, first, count), ElementWiseOperation::kPROD);
    if (bias)
        y = &node.elementwise(*y, alignedBlob(node, *bias, first, count), ElementWiseOperation::kSUM);
    node.setTop(*y);
}

int channelAxisOf(CaffeNode const& node)
{
    return node.nbInputs() > 0 ? node.channelAxis() + node.shift() : 1;
}

void importLrn(CaffeNode& node)
{
    node.expect(1, 1);
    auto const& p = node.layer().lrn_param();
    int32_t const size = asInt(node, p.local_size(), "local_size", 1);
    if (size % 2 == 0)
        node.invalid(fmt::format("local_size is {}; it must be odd", size));
    ITensor& x = node.atLeast(node.x(), 3);
    if (p.norm_region() == tw_caffe::LRNParameter::ACROSS_CHANNELS)
        return node.setTop(node.out(node.added(node.network().addLRN(x, size, p.alpha(), p.beta(), p.k()))));
    // Within each channel: x (1 + alpha mean(x^2 in the window))^-beta, padding counted.
    ITensor& squares = node.elementwise(x, x, ElementWiseOperation::kPROD);
    auto& mean =
        node.added(node.network().addPoolingNd(squares, nvinfer1::PoolingType::kAVERAGE, nvinfer1::DimsHW(size, size)));
    mean.setPaddingNd(nvinfer1::DimsHW(size / 2, size / 2));
    mean.setAverageCountExcludesPadding(false);
    ITensor& factor = node.scaled(node.out(mean), p.alpha(), 1, -p.beta());
    node.setTop(node.elementwise(x, factor, ElementWiseOperation::kPROD));
}

// (x - mean) / (deviation + eps), of each channel or of all.
void importMvn(CaffeNode& node)
{
    node.expect(1, 1);
    auto const& p = node.layer().mvn_param();
    ITensor& x = node.atLeast(node.x(), 3);
    std::vector<int> axes;
    for (int i = (p.across_channels() ? 1 : 2) - node.shift(); i < x.getDimensions().nbDims; ++i)
        axes.push_back(i);
    ITensor& centred =
        node.elementwise(x, node.reduce(x, ReduceOperation::kAVG, axes, true), ElementWiseOperation::kSUB);
    if (!p.normalize_variance())
        return node.setTop(centred);
    ITensor& variance =
        node.reduce(node.elementwise(centred, centred, ElementWiseOperation::kPROD), ReduceOperation::kAVG, axes, true);
    ITensor& deviation = node.scaled(node.unary(variance, UnaryOperation::kSQRT), 1, p.eps());
    node.setTop(node.elementwise(centred, deviation, ElementWiseOperation::kDIV));
}

} // namespace

void addNormalizations(LayerMap& map)
{
    map["BatchNorm"] = importBatchNorm;
    map["Scale"] = [](CaffeNode& node) {
        auto const& p = node.layer().scale_param();
        importScale(node, true, p.has_axis() ? p.axis() : channelAxisOf(node), p.num_axes(), p.bias_term());
    };
    map["Bias"] = [](CaffeNode& node) {
        auto const& p = node.layer().bias_param();
        importScale(node, false, p.has_axis() ? p.axis() : channelAxisOf(node), p.num_axes(), true);
    };
    map["LRN"] = importLrn;
    map["MVN"] = importMvn;
}

} // namespace tw::caffe
