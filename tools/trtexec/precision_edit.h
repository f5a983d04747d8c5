// SPDX-License-Identifier: Apache-2.0
// Networks with layers in higher precision, by public calls that every client has: ITensor inputs past Q/DQ pairs, layer
// precisions that are obeyed.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "library.h"

namespace tw::trtexec {

bool hasExplicitQuantization(nvinfer1::INetworkDefinition const& network);

// The options of the same engine in FP32: no lower precision, TF32 or forced weights, formats of the model's own types,
// kernels chosen by estimate.
Options inFp32(Options const& options);

// What the tensors that Q and DQ layers make stand for: name -> name of the tensor in front of the pair.
std::map<std::string, std::string> quantizedTensors(nvinfer1::INetworkDefinition const& network);

// Layers that `chosen` picks read what stands in front of the Q/DQ pairs on their inputs, activations and weights.
void leavePairsOut(nvinfer1::INetworkDefinition& network, std::function<bool(std::string const&)> const& chosen);

// Every tensor of floats becomes an output, those within loops and conditionals, of constant layers and of Q/DQ pairs
// excepted.
void markAllTensors(nvinfer1::INetworkDefinition& network);

// Layers whose precision makes a difference under these options: with Q/DQ pairs those that read them, without, those of
// sums for INT8 and those that compute for FP16. Not those that --layerPrecisions speaks of.
std::vector<std::string> layersWithChoice(nvinfer1::INetworkDefinition const& network, BuildOptions const& build);
// Computes them in FP32.
void keepInFp32(nvinfer1::INetworkDefinition& network, nvinfer1::IBuilderConfig& config,
                std::set<std::string> const& layers);

} // namespace tw::trtexec
