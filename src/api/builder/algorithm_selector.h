// SPDX-License-Identifier: Apache-2.0
// IAlgorithmSelector: the client's choice among the tactics of each layer.
#pragma once

#include <memory>

#include "NvInfer.h"
#include "tune/selector.h"

namespace tw::api {

// `rejectEmpty`: an empty answer is an error, else it means any.
std::unique_ptr<tune::Selector> adaptSelector(nvinfer1::IAlgorithmSelector& selector, bool rejectEmpty);

} // namespace tw::api
