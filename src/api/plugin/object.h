// SPDX-License-Identifier: Apache-2.0
// A client's plugin: which interface it implements, and its methods behind one face for all four.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "NvInfer.h"
#include "base/result.h"
#include "device/cuda/device.h"
#include "ops/plugin/op.h"

namespace tw::api {

// Clients write plugins for one thread at a time; the library calls what may not run side by side under this.
std::recursive_mutex& pluginMutex();

// Inputs and outputs as a plugin sees them: without the batch, where its interface has none.
struct PluginTensors
{
    std::vector<nvinfer1::PluginTensorDesc> descs; // inputs, then outputs
    std::vector<nvinfer1::Dims> least, most;
    std::vector<bool> isBroadcast;
    int32_t inputs = 0;
    int32_t maxBatch = 1;

    int32_t outputs() const { return int32_t(descs.size()) - inputs; }
};

class PluginObject
{
public:
    using Interface = ops::plugin::Interface;

    // Takes the plugin over; `layer` is for messages. An error when it is null or of an interface that there is not.
    // `device`: the GPU that it works on; null: the CPU.
    static Result<std::shared_ptr<PluginObject>> own(nvinfer1::IPluginV2* plugin, std::string const& layer,
                                                     std::shared_ptr<cuda::Device const> device = nullptr);
    ~PluginObject(); // terminates what is initialized, destroys
    PluginObject(PluginObject const&) = delete;
    PluginObject& operator=(PluginObject const&) = delete;

    Interface interface() const { return interface_; }
    nvinfer1::IPluginV2& get() const { return *plugin_; }
    nvinfer1::IPluginV2Ext& ext() const { return static_cast<nvinfer1::IPluginV2Ext&>(*plugin_); }
    nvinfer1::IPluginV2IOExt& ioExt() const { return static_cast<nvinfer1::IPluginV2IOExt&>(*plugin_); }
    nvinfer1::IPluginV2DynamicExt& dynamicExt() const { return static_cast<nvinfer1::IPluginV2DynamicExt&>(*plugin_); }
    std::string const& layer() const { return layer_; }
    void setLayer(std::string const& name);             // clones take it over
    std::string const& where() const { return where_; } // "layer 'a' (plugin 'Clip_TRT' version '1')"

    Result<std::shared_ptr<PluginObject>> clone(std::shared_ptr<cuda::Device const> device) const;
    Result<std::shared_ptr<PluginObject>> clone() const { return clone(device_); }
    // Whether the tensors' types and formats are a combination that it takes.
    bool accepts(PluginTensors const& tensors, int32_t position) const;
    bool acceptsAll(PluginTensors const& tensors) const;
    // Whether accepts() can be asked for one tensor after the other; else types and formats of all are one answer.
    bool isAskedOneByOne() const { return interface_ == Interface::kIOExt || interface_ == Interface::kDynamicExt; }
    void configure(PluginTensors const& tensors) const;
    Result<int64_t> workspaceBytes(PluginTensors const& tensors) const;
    Result<void> initialize();
    Result<std::string> serialize() const;
    // The handles are those of an execution context.
    void attach(cudnnContext* cudnn, cublasContext* cublas, nvinfer1::IGpuAllocator* allocator) const;
    void detach() const;
    // Types of the outputs, for inputs of these; the error names one that does not exist.
    Result<std::vector<DataType>> outputTypes(std::vector<DataType> const& inputs) const;

private:
    PluginObject(nvinfer1::IPluginV2* plugin, std::string const& layer, std::shared_ptr<cuda::Device const> device);
    class Call; // of one method: no other runs meanwhile, and the device is current
    bool acceptsOneType(PluginTensors const& tensors) const;

    nvinfer1::IPluginV2* plugin_;
    Interface interface_ = Interface::kV2;
    std::string layer_, where_;
    std::shared_ptr<cuda::Device const> device_;
    bool isInitialized_ = false;
};

} // namespace tw::api
