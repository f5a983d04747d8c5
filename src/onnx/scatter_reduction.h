// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "onnx/importer.h"

namespace tw::onnx {

// Output 0 of a ScatterElements (along its axis) or ScatterND node whose updates are added to, multiplied with, or
// compared with the data and each other.
void scatterReduced(ImportContext& ctx, nvinfer1::ScatterMode mode, std::string const& reduction);

} // namespace tw::onnx
