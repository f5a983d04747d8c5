// SPDX-License-Identifier: Apache-2.0
// Runs an engine as it is shipped and looks at what its layers make, beside the model in FP32.
#pragma once

#include "accuracy_report.h"
#include "build.h"
#include "infer.h"

namespace tw::trtexec {

// `inputs`: what the engine has been run on. Needs the model, which the FP32 network is built from.
std::vector<LayerAccuracy> compareLayers(Log& log, LibraryLogger& logger, Options const& options,
                                         nvinfer1::ICudaEngine& engine, Bindings const& inputs);

} // namespace tw::trtexec
