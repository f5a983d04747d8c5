// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include <NvInfer.h>

// `expect(good, what)` hears of each check.
void checkLoops(nvinfer1::ILogger& logger, std::function<void(bool, char const*)> const& expect);
