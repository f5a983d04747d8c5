// SPDX-License-Identifier: Apache-2.0
// Eltwise, Axpy, Reduction, Softmax, ArgMax.
#include "parsers/caffe/node.h"

namespace tw::caffe {

using importers::volume;
using nvinfer1::ElementWiseOperation;
using nvinfer1::ReduceOperation;
using tw_caffe::EltwiseParameter;
using tw_caffe::ReductionParameter;

namespace {

void importEltwise(CaffeNode& node)
{
    EltwiseParameter const& p = node.layer().eltwise_param();
    if (node.nbInputs() < 2)
        node.expect(2, 1);
    node.expect(node.nbInputs(), 1);
    bool const isSum = p.operation() == EltwiseParameter::SUM;
    if (p.coeff_size() != 0 && p.coeff_size() != node.nbInputs())
        node.invalid(fmt::format("it has {} coefficients for {} bottoms", p.coeff_size(), node.nbInputs()));
    if (p.coeff_size() != 0 && !isSum)
        node.warn("coeff is for the operation SUM and says nothing here");
    auto const coefficient = [&](int i) { return isSum && p.coeff_size() != 0 ? double(p.coeff(i)) : 1; };
    auto const operation = isSum                                     ? ElementWiseOperation::kSUM
                           : p.operation() == EltwiseParameter::PROD ? ElementWiseOperation::kPROD
                                                                     : ElementWiseOperation::kMAX;
    ITensor* y = &node.scaled(node.x(), coefficient(0), 0);
    for (int i = 1; i < node.nbInputs(); ++i)
        y = coefficient(i) == -1 ? &node.elementwise(*y, node.x(i), ElementWiseOperation::kSUB)
                                 : &node.elementwise(*y, node.scaled(node.x(i), coefficient(i), 0), operation);
    node.setTop(*y);
}

// Of three bottoms a [n, c] or [n, c, 1, 1], x, y: a x + y.
void importAxpy(CaffeNode& node)
{
    node.expect(3, 1);
    int const missing = node.dims(1).nbDims - node.dims(0).nbDims;
    ITensor& a =
        missing > 0 ? node.shaped(node.x(), node.dims().nbDims, std::vector<int64_t>(size_t(missing), 1)) : node.x();
    ITensor& product = node.elementwise(a, node.x(1), ElementWiseOperation::kPROD);
    node.setTop(0, node.elementwise(product, node.x(2), ElementWiseOperation::kSUM), node.caffeRank(1));
}

// Dimensions that Caffe drops stay, as 1.
void importReduction(CaffeNode& node)
{
    node.expect(1, 1);
    ReductionParameter const& p = node.layer().reduction_param();
    int const axis = node.axisOf(p.axis());
    std::vector<int> axes;
    for (int i = axis; i < node.dims().nbDims; ++i)
        axes.push_back(i);
    ITensor* x = &node.x();
    if (p.operation() == ReductionParameter::ASUM)
        x = &node.unary(*x, nvinfer1::UnaryOperation::kABS);
    else if (p.operation() == ReductionParameter::SUMSQ)
        x = &node.elementwise(*x, *x, ElementWiseOperation::kPROD);
    bool const isMean = p.operation() == ReductionParameter::MEAN;
    ITensor& y = node.reduce(*x, isMean ? ReduceOperation::kAVG : ReduceOperation::kSUM, axes, true);
    node.setTop(0, node.scaled(y, p.coeff(), 0), axis + node.shift());
}

void importSoftmax(CaffeNode& node)
{
    if (node.nbInputs() != 2 || node.opType() != "SoftmaxWithLoss") // the second are the labels
        node.expect(1, 1);
    auto const& p = node.layer().softmax_param();
    int const axis = p.has_axis() ? node.axisOf(p.axis()) : node.channelAxis();
    auto& layer = node.added(node.network().addSoftMax(node.x()));
    layer.setAxes(1u << axis);
    node.setTop(node.out(layer));
}

// The largest k, or where they are: along an axis, or of all elements of an image as [n, 1, k]; there both are [n, 2, k].
void importArgMax(CaffeNode& node)
{
    node.expect(1, 1);
    auto const& p = node.layer().argmax_param();
    int32_t const k = asInt(node, p.top_k(), "top_k", 1);
    ITensor* x = &node.x();
    int const batch = 1 - node.shift();
    int axis = 0;
    if (p.has_axis()) {
        axis = node.axisOf(p.axis());
    } else {
        x = &node.shaped(*x, batch, {1, -1});
        axis = batch + 1;
    }
    auto& layer = node.added(node.network().addTopK(*x, nvinfer1::TopKOperation::kMAX, k, 1u << axis));
    ITensor &values = node.out(layer, 0), &places = node.cast(node.out(layer, 1), DataType::kFLOAT);
    if (p.has_axis())
        return node.setTop(p.out_max_val() ? values : places);
    node.setTop(0, p.out_max_val() ? node.concat({&places, &values}, batch) : places, 3);
}

} // namespace

void addArithmetic(LayerMap& map)
{
    map["Eltwise"] = importEltwise;
    map["Axpy"] = importAxpy;
    map["Reduction"] = importReduction;
    map["Softmax"] = importSoftmax;
    map["SoftmaxWithLoss"] = importSoftmax;
    map["ArgMax"] = importArgMax;
}

} // namespace tw::caffe
