// SPDX-License-Identifier: Apache-2.0
#include "parsers/caffe/network.h"

#include <algorithm>
#include <unordered_set>

#include "parsers/caffe/upgrade.h"

namespace tw::caffe {

using importers::fail;
using importers::ImportError;
using nvonnxparser::ErrorCode;
using tw_caffe::LayerParameter;

namespace {

// Kinds that other programs' files have and that cannot be imported, with what to do.
char const* hintFor(std::string const& type)
{
    auto const isOneOf = [&](std::initializer_list<char const*> list) {
        return std::any_of(list.begin(), list.end(), [&](char const* t) { return type == t; });
    };
    if (isOneOf({"LSTM", "RNN", "Recurrent", "LSTMUnit"}))
        return "recurrent layers are not imported from Caffe; export the network as ONNX, or build them with addRNNv2";
    if (isOneOf({"Data", "ImageData", "HDF5Data", "MemoryData", "WindowData", "DummyData", "AnnotatedData"}))
        return "data layers belong to training; use the deploy form of the network, whose inputs are Input layers";
    if (isOneOf({"Accuracy", "EuclideanLoss", "HingeLoss", "InfogainLoss", "MultinomialLogisticLoss", "ContrastiveLoss",
                 "SigmoidCrossEntropyLoss", "MultiBoxLoss", "DetectionEvaluate"}))
        return "it belongs to training and its measures; use the deploy form of the network";
    return "there is no such layer here; an IPluginFactoryV2 (ICaffeParser::setPluginFactoryV2) can make a plugin of "
           "it";
}

} // namespace

NetworkImporter::NetworkImporter(ImportedNetwork& to, tw_caffe::NetParameter const& net, WeightSource& weights,
                                 Settings settings)
    : to_(to), net_(net), weights_(weights), settings_(std::move(settings))
{
    for (auto* add : {addActivations, addArithmetic, addConvolutions, addDetection, addNormalizations, addPooling,
                      addResizing, addShapes})
        add(layers_);
}

void NetworkImporter::addInput(std::string const& name, std::vector<int64_t> const& dims)
{
    if (dims.size() != 4)
        fail(
            ErrorCode::kUNSUPPORTED_GRAPH,
            fmt::format("input '{}' has {} dimensions: TensorRT only supports 4 dimensional input", name, dims.size()));
    bool const isImplicit = to_.network().hasImplicitBatchDimension();
    Dims d{0, {}};
    if (!isImplicit) {
        d.d[d.nbDims++] = 1;
        to_.log(nvinfer1::ILogger::Severity::kWARNING,
                fmt::format("input '{}': the network has an explicit batch dimension, which is set to 1", name));
    }
    for (size_t i = 1; i < dims.size(); ++i) {
        if (dims[i] < 1 || dims[i] > INT32_MAX)
            fail(ErrorCode::kINVALID_VALUE, fmt::format("input '{}' has the dimensions [{}]; each must be in 1..{}",
                                                        name, fmt::join(dims, ", "), INT32_MAX));
        d.d[d.nbDims++] = int32_t(dims[i]);
    }
    ITensor* const tensor = to_.network().addInput(name.c_str(), DataType::kFLOAT, d);
    if (!tensor)
        fail(ErrorCode::kINVALID_VALUE, fmt::format("input '{}' was refused: {}", name, to_.reason()));
    blobs_[name] = {tensor, int(dims.size())};
}

void NetworkImporter::addInputs()
{
    for (int i = 0; i < net_.input_size(); ++i) {
        std::vector<int64_t> dims;
        if (i < net_.input_shape_size())
            dims = {net_.input_shape(i).dim().begin(), net_.input_shape(i).dim().end()};
        else // four for each input
            for (int k = 4 * i; k < std::min(4 * (i + 1), net_.input_dim_size()); ++k)
                dims.push_back(net_.input_dim(k));
        addInput(net_.input(i), dims);
    }
}

void NetworkImporter::addInputLayer(LayerParameter const& layer)
{
    auto const& shapes = layer.input_param().shape();
    if (shapes.size() != layer.top_size() && shapes.size() != 1)
        fail(ErrorCode::kINVALID_NODE,
             fmt::format("layer '{}' has {} tops and {} shapes", layer.name(), layer.top_size(), shapes.size()));
    for (int i = 0; i < layer.top_size(); ++i) {
        auto const& dim = shapes[shapes.size() == 1 ? 0 : i].dim();
        addInput(layer.top(i), {dim.begin(), dim.end()});
    }
}

std::vector<BlobTensor> NetworkImporter::bottomsOf(LayerParameter const& layer) const
{
    std::vector<BlobTensor> bottoms;
    std::unordered_set<std::string_view> const tops(layer.top().begin(), layer.top().end());
    for (std::string const& name : layer.bottom()) {
        auto const it = blobs_.find(name);
        // Of a loss the labels may be missing: only its first bottom is used.
        if (it == blobs_.end() && layer.type() == "SoftmaxWithLoss" && !bottoms.empty())
            break;
        if (it == blobs_.end())
            fail(ErrorCode::kINVALID_GRAPH,
                 fmt::format("bottom '{}' is neither an input of the network nor a top of a layer before this one",
                             name));
        if (it->second.tensor->isNetworkInput() && tops.contains(name))
            fail(ErrorCode::kUNSUPPORTED_GRAPH,
                 fmt::format(
                     "TensorRT does not support in-place operations on input tensors in a prototxt file. Give the "
                     "top of this layer another name than '{}'",
                     name));
        bottoms.push_back(it->second);
    }
    return bottoms;
}

void NetworkImporter::addPlugin(CaffeNode& node)
{
    std::vector<Blob> blobs;
    for (int i = 0; i < node.nbBlobs(); ++i)
        blobs.push_back(node.blob(i, "an array of a plugin"));
    std::vector<nvinfer1::Weights> weights;
    for (Blob const& b : blobs) { // as the plugin may keep them, they live as long as the parser
        auto const size = int64_t(b.values.size() * sizeof(float));
        auto* const values = static_cast<float*>(node.allocate(size));
        std::copy(b.values.begin(), b.values.end(), values);
        weights.push_back({DataType::kFLOAT, values, int64_t(b.values.size())});
    }
    nvinfer1::IPluginV2* const plugin =
        settings_.factory->createPlugin(node.layer().name().c_str(), weights.empty() ? nullptr : weights.data(),
                                        int32_t(weights.size()), settings_.pluginNamespace.c_str());
    if (!plugin)
        node.fail("the plugin factory gave no plugin for it");
    auto& layer = node.addPlugin(*plugin);
    if (layer.getNbOutputs() < node.nbOutputs())
        node.fail(fmt::format("it has {} tops, the plugin {} outputs", node.nbOutputs(), layer.getNbOutputs()));
    node.setTops(layer);
}

// A layer that changes nothing gives a tensor of its own, but for those that are never layers.
void NetworkImporter::addIdentities(CaffeNode& node) const
{
    if (node.opType() == "Dropout" || node.opType() == "Split")
        return;
    for (int i = 0; i < node.nbOutputs(); ++i) {
        BlobTensor const top = node.tops()[size_t(i)];
        for (int k = 0; k < node.nbInputs(); ++k)
            if (top.tensor == &node.x(k)) {
                node.setTop(i, node.identity(*top.tensor), top.rank);
                break;
            }
    }
}

// The layer whose output is a top has the name that Caffe's layer has; those that help have it with a number.
void NetworkImporter::nameLayers(LayerParameter const& layer, int first) const
{
    int const last = to_.network().getNbLayers() - 1;
    if (last <= first)
        return;
    nvinfer1::ILayer &helper = *to_.network().getLayer(first), &giver = *to_.network().getLayer(last);
    std::string const name = importers::cleanName(layer.name()), numbered = giver.getName();
    if (helper.getName() == name) {
        helper.setName(numbered.c_str());
        giver.setName(name.c_str());
    }
}

void NetworkImporter::addLayer(LayerParameter const& layer)
{
    if (layer.type() == "Input")
        return addInputLayer(layer);
    CaffeNode node(to_, layer, weights_, bottomsOf(layer));
    if (settings_.factory && settings_.factory->isPluginV2(layer.name().c_str())) {
        addPlugin(node);
    } else {
        auto const it = layers_.find(layer.type());
        if (it == layers_.end())
            fail(ErrorCode::kUNSUPPORTED_NODE, hintFor(layer.type()));
        int const first = to_.network().getNbLayers();
        it->second(node);
        addIdentities(node);
        nameLayers(layer, first);
    }
    for (int i = 0; i < layer.top_size(); ++i) {
        if (!node.tops()[size_t(i)].tensor)
            fail(ErrorCode::kUNSUPPORTED_NODE, fmt::format("top {} ('{}') is not computed", i, layer.top(i)));
        blobs_[layer.top(i)] = node.tops()[size_t(i)];
        order_.push_back(layer.top(i));
    }
}

// Of several blobs that are one tensor the last gives the name; inputs keep theirs.
void NetworkImporter::nameTensors() const
{
    for (std::string const& name : order_)
        if (ITensor& tensor = *blobs_.at(name).tensor; !tensor.isNetworkInput())
            tensor.setName(importers::cleanName(name).c_str());
}

void NetworkImporter::run()
{
    addInputs();
    for (int i = 0; i < net_.layer_size(); ++i) {
        LayerParameter const& layer = net_.layer(i);
        if (!isDeployed(layer, net_))
            continue;
        try {
            addLayer(layer);
        } catch (ImportError& error) {
            bool const isKnown = layer.type() == "Input" || layers_.count(layer.type());
            error.message = isKnown ? fmt::format("error parsing layer type {} index {}: {}: {}", layer.type(), i,
                                                  layer.name(), error.message)
                                    : fmt::format("could not parse layer type {}: layer '{}' (index {}): {}",
                                                  layer.type(), layer.name(), i, error.message);
            throw;
        }
    }
    if (to_.network().getNbInputs() == 0)
        fail(ErrorCode::kINVALID_GRAPH, "the text has no input and no layer of a network");
    nameTensors();
}

} // namespace tw::caffe
