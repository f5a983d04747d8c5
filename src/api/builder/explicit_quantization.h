// SPDX-License-Identifier: Apache-2.0
// The rules of networks with quantize and dequantize layers that no layer can check by itself: flags, precisions, where
// scales for each channel may stand, and what may read INT8 tensors.
#pragma once

#include "api/builder/config.h"
#include "api/network/network.h"

namespace tw::api {

// Whether the network has such layers. INT8 inputs and outputs with a dynamic range are none.
bool isExplicit(NetworkObject const& n);
// `g`: the network's graph as it was imported. Nothing where it has no such layer.
Result<void> checkExplicitQuantization(NetworkObject const& n, ir::Graph const& g, BuilderConfigObject const& c);

} // namespace tw::api
