// SPDX-License-Identifier: Apache-2.0
// What the layers of an engine make in a run, as files: the engine as it is, with its fusions and kernels.
//   <folder>/tensors.json  {"Tensors": [{"File", "Tensor", "Layer", "NetworkLayers", "Tactic", "Scale"}, ..]}
//   <folder>/<k>.npy       the elements of one tensor, in rows, for NumPy
// In order of execution; one entry for each output of each layer that is no shape tensor. "Scale": what one step of an INT8
// tensor is worth, where that is one known number (the build's: a refit does not change it). Loops and branches are one layer.
// A run replaces what an earlier one has left.
#pragma once

#include <optional>
#include <string>

#include "device/cuda/device.h"
#include "runtime/engine.h"

namespace tw::api {

class TensorRecords final : public runtime::StepObserver
{
public:
    // On a GPU: `device` and the run's stream.
    TensorRecords(std::string folder, runtime::Engine const& engine, runtime::Instance const& instance,
                  cuda::Device const* device, CUstream_st* stream)
        : folder_(std::move(folder)), engine_(engine), instance_(instance), device_(device), stream_(stream)
    {}
    // Between two steps that run, everything that earlier ones have made is there, parts of other values too.
    void before(runtime::LoadedStep const& step) override { recordUpTo(size_t(&step - instance_.block->steps.data())); }
    void after(runtime::LoadedStep const&) override {}
    // After the run: what is left, and the list. The first thing that went wrong.
    Result<void> finish();

private:
    void recordUpTo(size_t end);
    Result<void> record(runtime::LoadedStep const& step, size_t output);
    Result<void> write(std::string const& name, std::string const& bytes) const;

    std::string folder_;
    runtime::Engine const& engine_;
    runtime::Instance const& instance_;
    cuda::Device const* device_;
    CUstream_st* stream_;
    size_t next_ = 0;
    int files_ = 0;
    std::string rows_; // of tensors.json
    std::optional<Error> error_;
};

} // namespace tw::api
