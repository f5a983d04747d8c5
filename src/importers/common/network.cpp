// SPDX-License-Identifier: Apache-2.0
#include "importers/common/network.h"

#include <algorithm>
#include <cstdlib>

namespace tw::importers {

std::string cleanName(std::string const& name)
{
    std::string clean = name.substr(0, std::min<size_t>(name.find('\0'), 4000));
    return clean;
}

void Memory::Free::operator()(void* p) const
{
    std::free(p);
}

void* Memory::allocate(int64_t sizeBytes)
{
    void* p = std::calloc(size_t(std::max<int64_t>(sizeBytes, 1)), 1);
    if (p)
        buffers_.emplace_back(p);
    return p;
}

void ImportedNetwork::log(nvinfer1::ILogger::Severity severity, std::string const& message) const
{
    logger_.log(severity, (std::string(parser_) + ": " + message).c_str());
}

std::string ImportedNetwork::uniqueLayerName(std::string const& wanted)
{
    std::string const base = cleanName(wanted);
    std::string name = base;
    while (!layerNames_.insert(name).second)
        name = fmt::format("{}_{}", base, ++nextSuffix_[base]);
    return name;
}

void ImportedNetwork::nameWeights(nvinfer1::Weights const& weights, std::string const& name, std::string const& suffix)
{
    if (!name.empty() && name.find('\0') == std::string::npos)
        weightsNames_.push_back({weights, name, suffix});
}

void ImportedNetwork::setWeightsNames()
{
    std::unordered_set<std::string> known;
    for (NamedWeights const& w : weightsNames_) {
        if (decided_.count(w.name))
            continue;
        std::string const name = w.name + w.suffix;
        if (known.insert(name).second) // one initializer may feed several layers
            network_.setWeightsName(w.weights, name.c_str());
    }
}

} // namespace tw::importers
