// SPDX-License-Identifier: Apache-2.0
// From the options to a network and a builder configuration.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "library.h"
#include "recorded.h"

namespace tw::trtexec {

// A network with what must outlive it: parsers own the weights until the build ends.
struct ParsedNetwork
{
    std::shared_ptr<void> parser;
    std::unique_ptr<nvinfer1::INetworkDefinition> network;
    std::vector<std::vector<std::byte>> ownedWeights; // weights that the tool replaced
};

void parseModel(Log& log, LibraryLogger& logger, ModelOptions const& model, ParsedNetwork& target);

// Whether there is the core that --useDLACore asks for.
void checkDlaCore(SystemOptions const& system, int32_t cores);
// Types and formats of the network's inputs and outputs.
void applyIoFormats(nvinfer1::INetworkDefinition& network, BuildOptions const& build);
// Flags, pools, tactic sources, devices, layer precisions, dynamic ranges.
void applyBuildOptions(Log& log, ParsedNetwork& parsed, nvinfer1::IBuilder& builder, nvinfer1::IBuilderConfig& config,
                       BuildOptions const& build, SystemOptions const& system);
// One optimization profile for each stream, where the network has dynamic shapes. Inputs without a given shape take
// that of their recorded tensor, else 1 for each dynamic dimension.
void applyProfiles(Log& log, nvinfer1::INetworkDefinition& network, nvinfer1::IBuilder& builder,
                   nvinfer1::IBuilderConfig& config, Options const& options,
                   std::vector<RecordedTensor> const& recordedInputs);
// Overwrites the two smallest of each four neighbouring weights along the axis that sums run over with zero: in
// convolutions, fully connected layers, and constants that matrix products read.
void forceSparseWeights(Log& log, ParsedNetwork& parsed);

} // namespace tw::trtexec
