// SPDX-License-Identifier: Apache-2.0
// The library does not copy weights: their arrays must live as long as the network, whatever becomes of the layer's object.
#pragma once

#include <NvInfer.h>

#include "arguments.h"

namespace tw::python {

/// Keeps the memory of weights alive until the network's object is freed.
nvinfer1::Weights keepWith(nb::handle network, WeightsArgument const& argument);

/// Notes the network that a layer belongs to; called whenever a layer is given to Python.
void noteLayer(nvinfer1::ILayer const* layer, nb::handle network);

/// As above, for a layer that was noted.
nvinfer1::Weights keepWithNetworkOf(nvinfer1::ILayer const& layer, WeightsArgument const& argument);

/// Getter and setter of a layer's weights as properties.
template <class C>
auto weightsGetter(nvinfer1::Weights (C::*get)() const noexcept)
{
    return [get](nb::handle self) { return arrayOfWeights((nb::cast<C&>(self).*get)(), self); };
}

template <class C>
auto weightsSetter(void (C::*set)(nvinfer1::Weights) noexcept)
{
    return [set](C& self, WeightsArgument weights) { (self.*set)(keepWithNetworkOf(self, weights)); };
}

} // namespace tw::python
