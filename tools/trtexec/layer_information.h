// SPDX-License-Identifier: Apache-2.0
// What the engine inspector's JSON (docs/formats/inspector.md) says of an engine, in lines for the log.
#pragma once

#include <string>
#include <vector>

namespace tw::trtexec {

// That other work takes the CPUs; empty where it does not.
std::string busyLine();

// Layers without a fast kernel by what they lack, and copies, with their shares of the time; none where those are too
// small to be said.
std::vector<std::string> slowLayerLines(std::string const& engineJson);

// How many layers compute in which type, where the JSON knows (engines with detailed profiling verbosity): what
// outputs that differ from a reference may come from.
std::string layerTypesLine(std::string const& engineJson);

} // namespace tw::trtexec
