// SPDX-License-Identifier: Apache-2.0
// The build: a model becomes a plan, and a plan becomes an engine.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include <NvInferSafeRuntime.h>

#include "accuracy_report.h"
#include "files.h"
#include "library.h"
#include "network.h"

namespace tw::trtexec {

// Members are destroyed from the last to the first: the engine before the plan, the plan before the network.
struct Workspace
{
    std::unique_ptr<nvinfer1::IBuilder> builder;
    ParsedNetwork parsed; // empty when the engine was loaded
    std::unique_ptr<nvinfer1::IHostMemory> built;
    std::unique_ptr<MappedFile> loaded;
    std::unique_ptr<nvinfer1::IRuntime> runtime;
    std::unique_ptr<nvinfer1::ICudaEngine> engine;
    // With --safe, in place of these two.
    std::unique_ptr<nvinfer1::safe::IRuntime> safeRuntime;
    std::unique_ptr<nvinfer1::safe::ICudaEngine> safeEngine;
    std::vector<RecordedTensor> recordedInputs; // of --loadInputsFrom
    std::optional<PrecisionSearch> search;      // of --maxLoss
    std::string buildMemory;                    // in words; empty when the engine was loaded

    void const* planData() const { return built ? built->data() : loaded->data(); }
    size_t planSize() const { return built ? built->size() : loaded->size(); }
};

// What else shall be done to a network and its configuration before the build.
using NetworkEdit = std::function<void(nvinfer1::INetworkDefinition&, nvinfer1::IBuilderConfig&)>;
// From the model to the plan's bytes in the workspace.
void buildPlan(Log& log, LibraryLogger& logger, Options const& options, Workspace& work, NetworkEdit const& edit = {});
// Builds and saves, or loads. Leaves the plan's bytes in the workspace.
void obtainPlan(Log& log, LibraryLogger& logger, Options const& options, Workspace& work);
// Makes the engine and frees what it was made from.
void deserialize(Log& log, LibraryLogger& logger, Options const& options, Workspace& work);
// --timeDeserialize: false when the first time is more than twice the average.
bool timeDeserialization(Log& log, LibraryLogger& logger, Workspace const& work);

} // namespace tw::trtexec
