// SPDX-License-Identifier: Apache-2.0
#include "parsers/caffe/node.h"

#include <cmath>

namespace tw::caffe {

using importers::describe;
using importers::fail;
using importers::volume;
using nvinfer1::Weights;
using nvonnxparser::ErrorCode;

namespace {

std::vector<importers::Value> valuesOf(std::vector<BlobTensor> const& blobs)
{
    std::vector<importers::Value> values;
    for (BlobTensor const& b : blobs)
        values.emplace_back(b.tensor);
    return values;
}

} // namespace

CaffeNode::CaffeNode(ImportedNetwork& to, tw_caffe::LayerParameter const& layer, WeightSource& weights,
                     std::vector<BlobTensor> bottoms)
    : ImportContext(to, layer.name(), layer.type(), 1, valuesOf(bottoms), {layer.top().begin(), layer.top().end()}),
      layer_(layer), weights_(weights), bottoms_(std::move(bottoms)), tops_(size_t(layer.top_size())),
      shift_(to.network().hasImplicitBatchDimension() ? 1 : 0)
{}

int CaffeNode::axisOf(int64_t wanted, int i) const
{
    int const found = axis(wanted, caffeRank(i));
    if (found < shift_)
        fail("axis 0 is the batch, which layers of a network with an implicit batch dimension cannot reach; make the "
             "network with NetworkDefinitionCreationFlag::kEXPLICIT_BATCH");
    return found - shift_;
}

int CaffeNode::channelAxis(int i) const
{
    int const rank = caffeRank(i);
    return axisOf(rank > 4 ? rank - 3 : 1, i);
}

ITensor& CaffeNode::shaped(ITensor& x, int kept, std::vector<int64_t> const& others)
{
    check(kept + int(others.size()) <= Dims::MAX_DIMS,
          fmt::format("a tensor of rank {} is above the highest rank of the API, 8", kept + int(others.size())));
    Dims y{kept, {}}; // 0 keeps a dimension
    Dims const from = x.getDimensions();
    int64_t left = 1, given = 1; // elements behind the kept dimensions
    for (int i = kept; i < from.nbDims; ++i)
        left *= from.d[i];
    bool isOpen = false;
    for (int64_t d : others) {
        check(d >= -1 && d <= INT32_MAX, fmt::format("a dimension of {} is out of range", d));
        y.d[y.nbDims++] = int32_t(d);
        isOpen = isOpen || d == -1;
        if (d != -1 && __builtin_mul_overflow(given, d, &given))
            given = INT64_MAX;
    }
    if (left >= 0 && (given == 0 || (isOpen ? left % given : left - given) != 0))
        invalid(fmt::format("the elements of shape {} do not fill [{}{}]", describe(from), kept > 0 ? "..., " : "",
                            fmt::join(others, ", ")));
    auto& layer = added(network().addShuffle(x));
    layer.setReshapeDimensions(y);
    return out(layer);
}

ITensor& CaffeNode::atLeast(ITensor& x, int n)
{
    int const rank = x.getDimensions().nbDims, missing = n + 1 - shift_ - rank;
    return missing > 0 ? shaped(x, rank, std::vector<int64_t>(size_t(missing), 1)) : x;
}

Sizes CaffeNode::sizesWithBatch(ITensor& x)
{
    Sizes sizes = sizesOf(x);
    if (!isImplicit() && !sizes.empty())
        sizes[0] = Size(slice(out(added(network().addShape(x))), {0}, {1}, {1}));
    return sizes;
}

void CaffeNode::expect(int bottoms, int tops) const
{
    if (nbInputs() != bottoms)
        invalid(fmt::format("expected {} bottom blobs, found {}", bottoms, nbInputs()));
    if (nbOutputs() != tops)
        invalid(fmt::format("expected {} tops blobs, found {}", tops, nbOutputs()));
}

void CaffeNode::setTop(int i, ITensor& y, int rank)
{
    if (size_t(i) < tops_.size())
        tops_[size_t(i)] = {&y, rank};
}

nvinfer1::IPluginV2Layer& CaffeNode::addPlugin(nvinfer1::IPluginV2& plugin)
{
    std::vector<ITensor*> inputs;
    for (int i = 0; i < nbInputs(); ++i)
        inputs.push_back(&x(i));
    return added(network().addPluginV2(inputs.data(), int32_t(inputs.size()), plugin));
}

void CaffeNode::setTops(nvinfer1::IPluginV2Layer& layer)
{
    for (int i = 0; i < nbOutputs(); ++i) {
        ITensor& y = out(layer, i);
        setTop(i, y, y.getDimensions().nbDims + shift_);
    }
}

Blob CaffeNode::blob(int i, char const* what) const
{
    std::vector<std::string_view> const& blobs = weights_.blobsOf(layer_.name());
    if (size_t(i) >= blobs.size())
        fail(fmt::format("the model has {} for it, and so no {} (blob {})",
                         blobs.empty() ? "no arrays" : fmt::format("{} array(s)", blobs.size()), what, i));
    Blob b = numbersOf(blobs[size_t(i)], fmt::format("{} (blob {})", what, i));
    if (b.values.empty())
        invalid(fmt::format("{} (blob {}) has no numbers", what, i));
    for (float v : b.values)
        if (std::isnan(v))
            invalid(fmt::format("Nan detected in weights: {} (blob {})", what, i));
    return b;
}

Constant CaffeNode::blob(int i, char const* what, Dims const& dims, Random const& random)
{
    int64_t const count = volume(dims);
    if (weights_.isRandom()) {
        Constant c = newConstant(DataType::kFLOAT, dims);
        weights_.draw(c, random);
        return c;
    }
    Blob const b = blob(i, what);
    if (int64_t(b.values.size()) != count)
        invalid(
            fmt::format("{} (blob {}) has {} numbers in the model, {} are needed: {}. Is the model of this network?",
                        what, i, b.values.size(), count, describe(dims)));
    Constant c;
    c.dims = dims;
    c.count = count;
    c.values = allocate(count * int64_t(sizeof(float)));
    std::copy(b.values.begin(), b.values.end(), static_cast<float*>(const_cast<void*>(c.values)));
    return c;
}

std::optional<Constant> CaffeNode::optionalBlob(int i, bool wanted, char const* what, Dims const& dims,
                                                Random const& random)
{
    bool const isThere = weights_.isRandom() ? wanted : nbBlobs() > i;
    if (!isThere && wanted)
        warn(fmt::format("the model has no {} (blob {}); the layer goes without", what, i));
    return isThere ? std::optional<Constant>(blob(i, what, dims, random)) : std::nullopt;
}

Weights CaffeNode::stored(Constant const& c) const
{
    if (weights_.type() == DataType::kFLOAT)
        return c.weights();
    constexpr double kLargest = 65504; // of FP16
    for (int64_t i = 0; i < c.count; ++i)
        if (double const v = c.floatAt(i); !(std::fabs(v) <= kLargest))
            invalid(fmt::format("Error: Weight {} is outside of [{}, {}], the range of FP16; parse with weights of "
                                "type kFLOAT",
                                v, -kLargest, kLargest));
    Constant half;
    half.type = DataType::kHALF;
    half.dims = c.dims;
    half.count = c.count;
    half.values = allocate(c.count * importers::sizeOf(DataType::kHALF));
    for (int64_t i = 0; i < c.count; ++i)
        store(half, i, c.floatAt(i));
    return half.weights();
}

Weights CaffeNode::stored(std::optional<Constant> const& c) const
{
    return c ? stored(*c) : Weights{weights_.type(), nullptr, 0};
}

ITensor& CaffeNode::along(ITensor& x, int axis, Constant const& c)
{
    Dims d = x.getDimensions();
    for (int i = 0; i < d.nbDims; ++i)
        d.d[i] = i == axis ? int32_t(c.count) : 1;
    return asTensor(importers::Value(reshaped(c, d)));
}

ITensor& CaffeNode::scaled(ITensor& x, int axis, Constant const* scale, Constant const* shift)
{
    constexpr int kLeast = 3; // dimensions behind the batch of a scale layer
    if (x.getDimensions().nbDims + shift_ > kLeast) {
        Weights const none{weights_.type(), nullptr, 0};
        return out(added(network().addScaleNd(x, nvinfer1::ScaleMode::kCHANNEL, shift ? stored(*shift) : none,
                                              scale ? stored(*scale) : none, none, axis)));
    }
    ITensor* y = &x;
    if (scale)
        y = &elementwise(*y, along(x, axis, *scale), nvinfer1::ElementWiseOperation::kPROD);
    if (shift)
        y = &elementwise(*y, along(x, axis, *shift), nvinfer1::ElementWiseOperation::kSUM);
    return *y;
}

ITensor& CaffeNode::scaled(ITensor& x, double scale, double shift, double power)
{
    if (scale == 1 && shift == 0 && power == 1)
        return x;
    int const rank = x.getDimensions().nbDims;
    ITensor& wide = atLeast(x, 3);
    auto const number = [&](double v, double neutral) {
        return v == neutral ? Weights{weights_.type(), nullptr, 0} : stored(floatConstant({float(v)}, Dims{1, {1}}));
    };
    ITensor& y = out(added(network().addScaleNd(wide, nvinfer1::ScaleMode::kUNIFORM, number(shift, 0), number(scale, 1),
                                                number(power, 1), 0)));
    return &wide == &x ? y : shaped(y, rank, {});
}

int32_t asInt(CaffeNode const& node, uint32_t value, char const* what, uint32_t least)
{
    if (value < least || value > uint32_t(INT32_MAX))
        node.invalid(fmt::format("{} is {} (allowed: {}..{})", what, value, least, INT32_MAX));
    return int32_t(value);
}

} // namespace tw::caffe
