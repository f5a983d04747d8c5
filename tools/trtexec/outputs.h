// SPDX-License-Identifier: Apache-2.0
// What is done with the outputs of the last query, and what is printed of the engine.
#pragma once

#include "bindings.h"

namespace tw::trtexec {

void dumpOutputs(Log& log, const Bindings& bindings);
std::string outputsJson(const Bindings& bindings);
// Prints one line for each output; false when one lies beyond the tolerance.
bool compareOutputs(Log& log, const Bindings& bindings, const ReportingOptions& reporting);

// --dumpLayerInfo and --exportLayerInfo. The context, when there is one, gives the shapes of this run.
void reportLayers(Log& log, nvinfer1::ICudaEngine& engine, const nvinfer1::IExecutionContext* context,
                  const ReportingOptions& reporting);

// The inspector's JSON of the engine.
std::string layerJson(nvinfer1::ICudaEngine& engine, const nvinfer1::IExecutionContext* context = nullptr);

} // namespace tw::trtexec
