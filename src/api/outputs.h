// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "api/network.h"

namespace tw::api {

// Those of markOutput() and of markOutputForShapes(), each once: the engine's outputs, in its order.
std::vector<TensorObject*> allOutputs(NetworkObject const& network);

} // namespace tw::api
