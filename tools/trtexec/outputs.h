// SPDX-License-Identifier: Apache-2.0
// What is done with the outputs of the last query, and what is printed of the engine.
#pragma once

#include "bindings.h"

namespace tw::trtexec {

void dumpOutputs(Log& log, std::vector<Binding> const& bindings);
std::string outputsJson(std::vector<Binding> const& bindings);
// Prints one line for each output; false when one lies beyond the tolerance.
bool compareOutputs(Log& log, std::vector<Binding> const& bindings, ReportingOptions const& reporting);

// --dumpLayerInfo and --exportLayerInfo. The context, when there is one, gives the shapes of this run.
void reportLayers(Log& log, nvinfer1::ICudaEngine& engine, nvinfer1::IExecutionContext const* context,
                  ReportingOptions const& reporting);

// The inspector's JSON of the engine.
std::string layerJson(nvinfer1::ICudaEngine& engine, nvinfer1::IExecutionContext const* context = nullptr);

} // namespace tw::trtexec
