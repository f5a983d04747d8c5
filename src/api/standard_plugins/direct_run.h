// SPDX-License-Identifier: Apache-2.0
// enqueue() of a standard plugin, called by a program and not by an engine: an engine of its one layer is built for the
// tensors, kept, and run.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "NvInfer.h"
#include "base/result.h"

namespace tw::api {

struct DirectTensor
{
    nvinfer1::PluginTensorDesc desc{}; // with the batch
    void const* data = nullptr;
};

class DirectRun
{
public:
    DirectRun();
    ~DirectRun();
    Result<void> run(nvinfer1::IPluginV2& plugin, std::vector<DirectTensor> const& inputs,
                     std::vector<DirectTensor> const& outputs, cudaStream_t stream);

private:
    struct Engine;
    Result<std::unique_ptr<Engine>> build(nvinfer1::IPluginV2& plugin, std::vector<DirectTensor> const& inputs,
                                          std::vector<DirectTensor> const& outputs) const;

    std::mutex mutex_;
    std::map<std::string, std::unique_ptr<Engine>> engines_; // by types, formats and shapes
};

} // namespace tw::api
