// SPDX-License-Identifier: Apache-2.0
// A whole network: its inputs, its layers in the order of the file, and which tensor a blob's name means.
#pragma once

#include <string>
#include <unordered_map>

#include "NvCaffeParser.h"
#include "parsers/caffe/node.h"

namespace tw::caffe {

class NetworkImporter
{
public:
    // What the caller of the parser has set.
    struct Settings
    {
        nvcaffeparser1::IPluginFactoryV2* factory = nullptr;
        std::string pluginNamespace;
    };
    NetworkImporter(ImportedNetwork& to, tw_caffe::NetParameter const& net, WeightSource& weights, Settings settings);

    // Adds all to the network and names the tensors. An ImportError says which layer was refused.
    void run();
    std::unordered_map<std::string, BlobTensor> const& blobs() const { return blobs_; }

private:
    void addInput(std::string const& name, std::vector<int64_t> const& dims);
    void addInputs();
    void addInputLayer(tw_caffe::LayerParameter const& layer);
    void addLayer(tw_caffe::LayerParameter const& layer);
    void addPlugin(CaffeNode& node);
    void addIdentities(CaffeNode& node) const;
    std::vector<BlobTensor> bottomsOf(tw_caffe::LayerParameter const& layer) const;
    void nameLayers(tw_caffe::LayerParameter const& layer, int first) const;
    void nameTensors() const;

    ImportedNetwork& to_;
    tw_caffe::NetParameter const& net_;
    WeightSource& weights_;
    Settings settings_;
    LayerMap layers_;
    std::unordered_map<std::string, BlobTensor> blobs_;
    std::vector<std::string> order_; // names of blobs as they were written last
};

} // namespace tw::caffe
