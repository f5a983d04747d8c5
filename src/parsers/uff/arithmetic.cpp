// SPDX-License-Identifier: Apache-2.0
// Binary, Unary, activations, Softmax, Batchnorm, LRN, Reduce, ArgMax, ArgMin.
#include <algorithm>
#include <cmath>

#include "parsers/uff/constants.h"
#include "parsers/uff/node.h"
#include "parsers/uff/operations.h"

namespace tw::uff {

namespace {

using nvinfer1::ActivationType;
using nvinfer1::ElementWiseOperation;
using nvinfer1::ReduceOperation;
using nvinfer1::UnaryOperation;

template <class T>
struct Named
{
    char const* name;
    T value;
};

template <class T, size_t N>
T const& byName(UffNode const& n, Named<T> const (&rows)[N], std::string const& name, char const* kind)
{
    auto const* const row = std::ranges::find_if(rows, [&](Named<T> const& r) { return name == r.name; });
    if (row == std::end(rows))
        n.fail(fmt::format("Unsupported {} op {}", kind, name));
    return row->value;
}

constexpr Named<ElementWiseOperation> kBinary[] = {
    {"add", ElementWiseOperation::kSUM}, {"sub", ElementWiseOperation::kSUB}, {"mul", ElementWiseOperation::kPROD},
    {"div", ElementWiseOperation::kDIV}, {"min", ElementWiseOperation::kMIN}, {"max", ElementWiseOperation::kMAX},
    {"pow", ElementWiseOperation::kPOW},
};

constexpr Named<UnaryOperation> kUnary[] = {
    {"neg", UnaryOperation::kNEG},     {"exp", UnaryOperation::kEXP},     {"log", UnaryOperation::kLOG},
    {"abs", UnaryOperation::kABS},     {"sqrt", UnaryOperation::kSQRT},   {"sin", UnaryOperation::kSIN},
    {"cos", UnaryOperation::kCOS},     {"tan", UnaryOperation::kTAN},     {"sinh", UnaryOperation::kSINH},
    {"cosh", UnaryOperation::kCOSH},   {"asin", UnaryOperation::kASIN},   {"acos", UnaryOperation::kACOS},
    {"atan", UnaryOperation::kATAN},   {"asinh", UnaryOperation::kASINH}, {"acosh", UnaryOperation::kACOSH},
    {"atanh", UnaryOperation::kATANH}, {"ceil", UnaryOperation::kCEIL},   {"floor", UnaryOperation::kFLOOR},
};

struct ActivationOf
{
    ActivationType type;
    float alpha = 0, beta = 0;
};
// Of Klambauer et al., Self-Normalizing Neural Networks, 2017.
constexpr float kSeluAlpha = 1.6732632423543772F, kSeluScale = 1.0507009873554805F;
constexpr Named<ActivationOf> kActivations[] = {
    {"relu", {ActivationType::kRELU}},
    {"tanh", {ActivationType::kTANH}},
    {"sigmoid", {ActivationType::kSIGMOID}},
    {"relu6", {ActivationType::kCLIP, 0, 6}},
    {"elu", {ActivationType::kELU, 1}},
    {"selu", {ActivationType::kSELU, kSeluAlpha, kSeluScale}},
    {"softplus", {ActivationType::kSOFTPLUS, 1, 1}},
    {"softsign", {ActivationType::kSOFTSIGN}},
};

constexpr Named<ReduceOperation> kReductions[] = {
    {"mean", ReduceOperation::kAVG}, {"sum", ReduceOperation::kSUM},   {"max", ReduceOperation::kMAX},
    {"min", ReduceOperation::kMIN},  {"prod", ReduceOperation::kPROD},
};

} // namespace

void importBinary(UffNode& n)
{
    std::string const function = n.requireText("func");
    ElementWiseOperation const op = byName(n, kBinary, function, "binary");
    if (n.count() != 2)
        n.invalid(fmt::format("the node has {} inputs; 2 are needed", n.count()));
    if (n.allConstant())
        return n.give(Value(computedBinary(n, function)));
    Layout const layout = n.commonLayout();
    Value const tensor = (n.in(0).value.isTensor() ? n.in(0) : n.in(1)).value;
    DataType const type = tensor.type();
    n.alongChannels(layout, tensor.dims());
    ITensor& a = n.beside(0, layout, type);
    ITensor& b = n.beside(1, layout, type);
    n.give(n.elementwise(a, b, op), layout);
}

void importUnary(UffNode& n)
{
    std::string const function = n.requireText("func");
    if (n.in(0).value.isConstant())
        return n.give(Value(computedUnary(n, function)));
    Tensor const& x = n.held(0);
    ITensor& t = x.value.tensor();
    if (function == "square")
        n.give(n.elementwise(t, t, ElementWiseOperation::kPROD), x.layout);
    else if (function == "rsqrt")
        n.give(n.unary(n.unary(t, UnaryOperation::kSQRT), UnaryOperation::kRECIP), x.layout);
    else
        n.give(n.unary(t, byName(n, kUnary, function, "unary")), x.layout);
}

void importActivation(UffNode& n)
{
    ActivationOf const& a = byName(n, kActivations, n.requireText("func"), "activation");
    Tensor const& x = n.held(0);
    n.give(n.activation(x.value.tensor(), a.type, a.alpha, a.beta), x.layout);
}

void importLeakyRelu(UffNode& n)
{
    constexpr float kOfTensorFlow = 0.2F;
    Tensor const& x = n.held(0);
    n.give(n.activation(x.value.tensor(), ActivationType::kLEAKY_RELU, n.attrFloat("alpha", kOfTensorFlow)), x.layout);
}

// Axis 0 or none is the channel: as the orders say, else where layers have it by themselves.
void importSoftmax(UffNode& n)
{
    Tensor x = n.held(0);
    constexpr int kOfLayers = 3; // their dimensions for images
    int axis = 0;
    if (int64_t const asked = n.attrInt("axis", 0); asked != 0) {
        axis = n.heldAxis(x, asked, "axis");
    } else if (n.hasOrders()) {
        std::vector<int> const order = inverse(n.places(0, int(x.layout.order.size()) + 1));
        axis = n.heldAxis(x, order.size() > 1 ? order[1] : 0, "the channel");
    } else {
        x = n.asItIs(x);
        axis = std::max(x.value.rank() - kOfLayers, 0);
    }
    auto& layer = n.added(n.network().addSoftMax(x.value.tensor()));
    layer.setAxes(1U << axis);
    n.give(n.out(layer), x.layout);
}

void importBatchnorm(UffNode& n)
{
    if (!n.hasAttr("epsilon"))
        n.invalid("field 'epsilon' is missing");
    double const epsilon = n.attrFloat("epsilon", 0);
    Image const x = n.image(0);
    int const rank = x.tensor.getDimensions().nbDims;
    // The operator knows images alone: dimensions in front of them were the batch's.
    constexpr int kOfImages = 3;
    int const axis = isInOrder(x.order()) ? std::max(rank - kOfImages, 0) : 0,
              channels = x.tensor.getDimensions().d[axis];
    std::vector<float> statistics[4];
    static constexpr char const* kNames[] = {"gamma", "beta", "the mean", "the variance"};
    for (int i = 0; i < 4; ++i) {
        Constant const& c = n.constantOf(i + 1, kNames[i]);
        if (c.count != channels)
            n.invalid(fmt::format("Invalid scale mode, nbWeights: {}: {} must have one for each of {} channels",
                                  c.count, kNames[i], channels));
        statistics[i] = c.floats();
    }
    std::vector<float> scale, shift;
    for (size_t c = 0; c < size_t(channels); ++c) {
        double const s = double(statistics[0][c]) / std::sqrt(double(statistics[3][c]) + epsilon);
        scale.push_back(float(s));
        shift.push_back(float(double(statistics[1][c]) - double(statistics[2][c]) * s));
    }
    Dims dims{1, {channels}};
    if (rank >= kOfImages) {
        Constant const a = n.weights(n.floatConstant(scale, dims)), b = n.weights(n.floatConstant(shift, dims));
        auto& layer = n.added(n.network().addScaleNd(x.tensor, nvinfer1::ScaleMode::kCHANNEL, b.weights(), a.weights(),
                                                     {a.type, nullptr, 0}, axis));
        return n.give(n.out(layer), x.layout);
    }
    dims = Dims{rank, {channels, 1}};
    ITensor& y = n.elementwise(x.tensor, n.asTensor(n.floatConstant(scale, dims)), ElementWiseOperation::kPROD);
    n.give(n.elementwise(y, n.asTensor(n.floatConstant(shift, dims)), ElementWiseOperation::kSUM), x.layout);
}

// The fields are those of ILRNLayer.
void importLrn(UffNode& n)
{
    Image const x = n.image(0);
    constexpr int64_t kLargest = 15;
    int64_t const window = n.requireInt("window_size");
    if (window < 1 || window > kLargest || window % 2 == 0)
        n.fail(fmt::format("field 'window_size' is {} (allowed: odd, 1..{})", window, kLargest));
    for (char const* field : {"alpha", "beta", "k"})
        if (!n.hasAttr(field))
            n.invalid(fmt::format("field '{}' is missing", field));
    n.check(x.tensor.getDimensions().nbDims == 3,
            fmt::format("the input has shape {} without the batch; channels and two "
                        "spatial dimensions are needed",
                        describe(x.tensor.getDimensions())));
    auto& layer = n.added(n.network().addLRN(x.tensor, int32_t(window), n.attrFloat("alpha", 0), n.attrFloat("beta", 0),
                                             n.attrFloat("k", 0)));
    n.give(n.out(layer), x.layout);
}

void importReduce(UffNode& n)
{
    std::string const function = n.requireText("func");
    ReduceOperation const op = byName(n, kReductions, function, "reduce");
    std::vector<int64_t> const asked = n.hasAttr("axes") ? n.integers("axes") : n.integersOf(1, "the axes");
    if (n.in(0).value.isConstant()) {
        std::vector<int> const axes = n.axes(asked, n.in(0).value.rank());
        return n.give(Value(computedReduce(n, function, axes, n.attrInt("keepdims", 1) != 0)));
    }
    Tensor const& x = n.tensorOf(0);
    std::vector<int> axes;
    for (int64_t a : asked)
        axes.push_back(n.heldAxis(x, a, "axis"));
    n.give(n.reduce(x.value.tensor(), op, axes, true), x.layout);
}

namespace {

void importArg(UffNode& n, nvinfer1::TopKOperation op)
{
    Tensor const& x = n.tensorOf(0);
    int const axis = n.heldAxis(x, n.axisOf("the axis"), "axis");
    auto& layer = n.added(n.network().addTopK(x.value.tensor(), op, 1, 1U << axis));
    n.give(n.squeeze(n.out(layer, 1), {axis}), without(x.layout, {axis}));
}

} // namespace

void importArgMax(UffNode& n)
{
    importArg(n, nvinfer1::TopKOperation::kMAX);
}

void importArgMin(UffNode& n)
{
    importArg(n, nvinfer1::TopKOperation::kMIN);
}

} // namespace tw::uff
