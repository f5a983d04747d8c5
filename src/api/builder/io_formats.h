// SPDX-License-Identifier: Apache-2.0
// Formats of network inputs and outputs: which ones a type can be in, and how they are told to clients.
#pragma once

#include <string>

#include "api/network/network.h"
#include "builder/formats.h"

namespace tw::api {

// In the words of 8.5: "Two wide channel vectorized row major FP16 format". `type`: how the type is called there.
std::string formatWords(Format format, std::string const& type);
// "kCHW2".
char const* publicNameOf(Format format);

// Whether a tensor of the type can be in the format where clients see it: table 1 of 8.5's guide, for devices that are no
// DLA. Types without a column there are linear only.
bool isLegal(Format format, DataType type);

// What the build may choose from for the network's inputs and outputs. `graph` is what the network became: it has the
// types. An error names a tensor that can be in none of the formats that it was allowed.
Result<builder::IoFormats> ioFormatsOf(NetworkObject const& network, ir::Graph const& graph, bool isDirect);

// Per dimension, in vectors of the format (elements where it has none); -1 after what is not known.
nvinfer1::Dims stridesOf(Format format, Extents const& dims);

} // namespace tw::api
