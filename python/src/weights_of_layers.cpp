// SPDX-License-Identifier: Apache-2.0
#include "weights_of_layers.h"

#include <unordered_map>

namespace tw::python {

namespace {

// Both with the GIL. Left to the end of the process: objects may be freed after static destructors.
struct Notes
{
    std::unordered_map<nvinfer1::ILayer const*, PyObject*> networkOf; // borrowed
    std::unordered_map<PyObject*, std::vector<nvinfer1::ILayer const*>> layersOf;
};

Notes& notes()
{
    static Notes& all = *new Notes;
    return all;
}

void forgetNetwork(void* network) noexcept
{
    auto const found = notes().layersOf.find(static_cast<PyObject*>(network));
    if (found == notes().layersOf.end())
        return;
    for (nvinfer1::ILayer const* layer : found->second)
        notes().networkOf.erase(layer);
    notes().layersOf.erase(found);
}

} // namespace

nvinfer1::Weights keepWith(nb::handle network, WeightsArgument const& argument)
{
    if (argument.weights.owner.is_valid())
        keepAlive(network, argument.weights.owner);
    return argument.weights.description;
}

void noteLayer(nvinfer1::ILayer const* layer, nb::handle network)
{
    if (!layer || !notes().networkOf.emplace(layer, network.ptr()).second)
        return;
    std::vector<nvinfer1::ILayer const*>& layers = notes().layersOf[network.ptr()];
    if (layers.empty())
        keepAlive(network, network.ptr(), &forgetNetwork);
    layers.push_back(layer);
}

nvinfer1::Weights keepWithNetworkOf(nvinfer1::ILayer const& layer, WeightsArgument const& argument)
{
    auto const found = notes().networkOf.find(&layer);
    if (found == notes().networkOf.end())
        throw std::runtime_error("weights: the layer's network is unknown");
    return keepWith(found->second, argument);
}

} // namespace tw::python
