// SPDX-License-Identifier: Apache-2.0
// What a layer must be to run on DLA, and what it lacks.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "NvInfer.h"
#include "dla/model.h"

namespace tw::dla {

struct Finding
{
    Reason reason;
    std::string text; // names parameter, value and limit
};

// What a layer may be on DLA.
struct Verdict
{
    std::vector<Finding> findings;         // empty: it can run there
    bool mayHalf = false, mayInt8 = false; // in which it can run
    bool isConstant = false; // it computes weights or shapes, which whoever reads them has within it: on neither device

    bool canRun() const { return findings.empty() && !isConstant; }
};

// What a configuration says of all layers.
struct Settings
{
    Model model = Model::kNone;
    bool half = false, int8 = false; // BuilderFlag
    bool hasCalibrator = false;      // gives every tensor a range that has none
    std::string whyNoInt8;           // of the whole network; empty: it may be
    std::string lack;                // of the whole network: why no layer can run; empty: nothing
    bool hearsPrecisions = false;    // what clients set for layers counts
    int64_t batch = 0; // what a wildcard in front is, or the maximum of an implicit batch; 0: not known yet
    std::function<bool(nvinfer1::ILayer const&)> isSetToDla; // by the client, for this layer
};

class Limits
{
public:
    // The network stays as it is while this lives.
    Limits(nvinfer1::INetworkDefinition const& network, Settings settings);
    Verdict of(nvinfer1::ILayer const& layer) const;
    // Layers that read a tensor.
    std::vector<nvinfer1::ILayer const*> const& readersOf(nvinfer1::ITensor const& t) const;
    // Null: a network input.
    nvinfer1::ILayer const* makerOf(nvinfer1::ITensor const& t) const;
    bool isConstant(nvinfer1::ITensor const& t) const;
    bool isConstant(nvinfer1::ILayer const& layer) const { return constants_.contains(&layer); } // Verdict::isConstant
    nvinfer1::INetworkDefinition const& network() const { return network_; }
    Settings const& settings() const { return settings_; }

private:
    nvinfer1::INetworkDefinition const& network_;
    Settings settings_;
    std::map<nvinfer1::ITensor const*, nvinfer1::ILayer const*> makers_;
    std::map<nvinfer1::ITensor const*, std::vector<nvinfer1::ILayer const*>> readers_;
    std::set<nvinfer1::ILayer const*> constants_; // see Verdict::isConstant
    std::set<nvinfer1::ITensor const*> outputs_;
    bool isNested_ = false, isQuantized_ = false; // by loops and conditionals; by Q/DQ layers
};

// Dimensions from the channels on, as DLA counts them; sizes of a dimension that is not there are 1.
struct Sizes
{
    int rank = 0;      // the batch's included
    int64_t batch = 1; // the product of all before the channels; 0: not known
    int64_t c = 1, h = 1, w = 1;
};
Sizes sizesOf(nvinfer1::ITensor const& t, Limits const& limits);

// "Convolution".
char const* nameOf(nvinfer1::LayerType type);

} // namespace tw::dla
