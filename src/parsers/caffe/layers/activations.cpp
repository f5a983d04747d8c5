// SPDX-License-Identifier: Apache-2.0
// Functions of one number.
#include <cmath>
#include <limits>

#include "parsers/caffe/node.h"

namespace tw::caffe {

using nvinfer1::ActivationType;
using nvinfer1::ElementWiseOperation;
using nvinfer1::UnaryOperation;

namespace {

// The same function for all layers of a kind.
template <ActivationType type>
void importActivation(CaffeNode& node)
{
    node.expect(1, 1);
    constexpr bool kIsSoftplus = type == ActivationType::kSOFTPLUS; // log(exp x + 1)
    node.setTop(node.activation(node.x(), type, kIsSoftplus ? 1 : 0, kIsSoftplus ? 1 : 0));
}

void importReLU(CaffeNode& node)
{
    node.expect(1, 1);
    float const slope = node.layer().relu_param().negative_slope();
    node.setTop(slope == 0 ? node.activation(node.x(), ActivationType::kRELU)
                           : node.activation(node.x(), ActivationType::kLEAKY_RELU, slope));
}

void importReLU6(CaffeNode& node)
{
    node.expect(1, 1);
    node.setTop(node.activation(node.x(), ActivationType::kCLIP, 0, 6));
}

void importElu(CaffeNode& node)
{
    node.expect(1, 1);
    node.setTop(node.activation(node.x(), ActivationType::kELU, node.layer().elu_param().alpha()));
}

void importClip(CaffeNode& node)
{
    node.expect(1, 1);
    auto const& p = node.layer().clip_param();
    using Limits = std::numeric_limits<float>;
    node.setTop(node.activation(node.x(), ActivationType::kCLIP, p.has_min() ? p.min() : Limits::lowest(),
                                p.has_max() ? p.max() : Limits::max()));
}

void importSwish(CaffeNode& node)
{
    node.expect(1, 1);
    ITensor& gate =
        node.activation(node.scaled(node.x(), node.layer().swish_param().beta(), 0), ActivationType::kSIGMOID);
    node.setTop(node.elementwise(node.x(), gate, ElementWiseOperation::kPROD));
}

// Slopes stay in FP32.
void importPReLU(CaffeNode& node)
{
    node.expect(1, 1);
    Dims const d = node.dims();
    node.check(node.caffeRank(0) >= 2, "its input has no channels");
    int const axis = node.channelAxis();
    bool const isShared = node.layer().prelu_param().channel_shared();
    Constant const slopes = node.blob(0, "slopes", Dims{1, {isShared ? 1 : d.d[axis]}}, Random::uniform(0, 1));
    node.setTop(node.out(node.added(node.network().addParametricReLU(node.x(), node.along(node.x(), axis, slopes)))));
}

void importAbsVal(CaffeNode& node)
{
    node.expect(1, 1);
    node.setTop(node.unary(node.x(), UnaryOperation::kABS));
}

void importPower(CaffeNode& node)
{
    node.expect(1, 1);
    auto const& p = node.layer().power_param();
    node.setTop(node.scaled(node.x(), p.scale(), p.shift(), p.power()));
}

// The logarithm of a base; -1: e.
double logOf(CaffeNode const& node, float base)
{
    node.check(base == -1 || (base > 0 && base != 1),
               fmt::format("base is {}; it must be above 0 and not 1, or -1 for e", base));
    return base == -1 ? 1 : std::log(double(base));
}

// base^(scale x + shift)
void importExp(CaffeNode& node)
{
    node.expect(1, 1);
    auto const& p = node.layer().exp_param();
    double const log = logOf(node, p.base());
    node.setTop(node.unary(node.scaled(node.x(), log * p.scale(), log * p.shift()), UnaryOperation::kEXP));
}

// log_base(scale x + shift)
void importLog(CaffeNode& node)
{
    node.expect(1, 1);
    auto const& p = node.layer().log_param();
    ITensor& y = node.unary(node.scaled(node.x(), p.scale(), p.shift()), UnaryOperation::kLOG);
    node.setTop(node.scaled(y, 1 / logOf(node, p.base()), 0));
}

void importThreshold(CaffeNode& node)
{
    node.expect(1, 1);
    ITensor& limit = node.scalarLike(node.layer().threshold_param().threshold(), node.x());
    node.setTop(node.cast(node.elementwise(node.x(), limit, ElementWiseOperation::kGREATER), DataType::kFLOAT));
}

} // namespace

void addActivations(LayerMap& map)
{
    map["ReLU"] = importReLU;
    map["ReLU6"] = importReLU6;
    map["PReLU"] = importPReLU;
    map["ELU"] = importElu;
    map["Sigmoid"] = importActivation<ActivationType::kSIGMOID>;
    map["TanH"] = importActivation<ActivationType::kTANH>;
    map["BNLL"] = importActivation<ActivationType::kSOFTPLUS>;
    map["AbsVal"] = importAbsVal;
    map["Clip"] = importClip;
    map["Swish"] = importSwish;
    map["Power"] = importPower;
    map["Exp"] = importExp;
    map["Log"] = importLog;
    map["Threshold"] = importThreshold;
}

} // namespace tw::caffe
