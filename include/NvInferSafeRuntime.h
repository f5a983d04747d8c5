// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORWRIGHT_NV_INFER_SAFE_RUNTIME_H
#define TENSORWRIGHT_NV_INFER_SAFE_RUNTIME_H

#include "NvInferRuntimeCommon.h"

#include <cstddef>
#include <cstdint>

#if defined(__GNUC__)
// Deprecated names are declared with the help of other deprecated names; only uses in client code shall warn.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvinfer1 {
namespace safe {

class ICudaEngine;
class IExecutionContext;

class TENSORRTAPI IRuntime
{
public:
    virtual ICudaEngine* deserializeCudaEngine(const void* blob, std::size_t size) noexcept = 0;

    virtual void setGpuAllocator(IGpuAllocator* allocator) noexcept = 0;

    virtual void setErrorRecorder(IErrorRecorder* recorder) noexcept = 0;
    virtual IErrorRecorder* getErrorRecorder() const noexcept = 0;

    IRuntime() = default;
    virtual ~IRuntime() noexcept = default;
    IRuntime(const IRuntime&) = delete;
    IRuntime(IRuntime&&) = delete;
    IRuntime& operator=(const IRuntime&) & = delete;
    IRuntime& operator=(IRuntime&&) & = delete;
};

class TENSORRTAPI ICudaEngine
{
public:
    TRT_DEPRECATED virtual std::int32_t getNbBindings() const noexcept = 0;

    TRT_DEPRECATED virtual std::int32_t getBindingIndex(const AsciiChar* name) const noexcept = 0;

    TRT_DEPRECATED virtual const AsciiChar* getBindingName(std::int32_t bindingIndex) const noexcept = 0;

    TRT_DEPRECATED virtual bool bindingIsInput(std::int32_t bindingIndex) const noexcept = 0;

    TRT_DEPRECATED virtual Dims getBindingDimensions(std::int32_t bindingIndex) const noexcept = 0;

    TRT_DEPRECATED virtual DataType getBindingDataType(std::int32_t bindingIndex) const noexcept = 0;

    virtual IExecutionContext* createExecutionContext() noexcept = 0;

    virtual IExecutionContext* createExecutionContextWithoutDeviceMemory() noexcept = 0;

    virtual size_t getDeviceMemorySize() const noexcept = 0;

    TRT_DEPRECATED virtual std::int32_t getBindingBytesPerComponent(std::int32_t bindingIndex) const noexcept = 0;

    TRT_DEPRECATED virtual std::int32_t getBindingComponentsPerElement(std::int32_t bindingIndex) const noexcept = 0;

    TRT_DEPRECATED virtual TensorFormat getBindingFormat(std::int32_t bindingIndex) const noexcept = 0;

    TRT_DEPRECATED virtual std::int32_t getBindingVectorizedDim(std::int32_t bindingIndex) const noexcept = 0;

    virtual const AsciiChar* getName() const noexcept = 0;

    virtual void setErrorRecorder(IErrorRecorder* recorder) noexcept = 0;
    virtual IErrorRecorder* getErrorRecorder() const noexcept = 0;

    ICudaEngine() = default;
    virtual ~ICudaEngine() noexcept = default;
    ICudaEngine(const ICudaEngine&) = delete;
    ICudaEngine(ICudaEngine&&) = delete;
    ICudaEngine& operator=(const ICudaEngine&) & = delete;
    ICudaEngine& operator=(ICudaEngine&&) & = delete;

    virtual Dims getTensorShape(const AsciiChar* tensorName) const noexcept = 0;

    virtual DataType getTensorDataType(const AsciiChar* tensorName) const noexcept = 0;

    virtual TensorIOMode getTensorIOMode(const AsciiChar* tensorName) const noexcept = 0;

    virtual std::int32_t getTensorBytesPerComponent(const AsciiChar* tensorName) const noexcept = 0;

    virtual std::int32_t getTensorComponentsPerElement(const AsciiChar* tensorName) const noexcept = 0;

    virtual TensorFormat getTensorFormat(const AsciiChar* tensorName) const noexcept = 0;

    virtual std::int32_t getTensorVectorizedDim(const AsciiChar* tensorName) const noexcept = 0;

    virtual std::int32_t getNbIOTensors() const noexcept = 0;

    virtual const AsciiChar* getIOTensorName(std::int32_t index) const noexcept = 0;
};

struct FloatingPointErrorInformation
{
    int32_t nbNanErrors;
    int32_t nbInfErrors;
};

class TENSORRTAPI IExecutionContext
{
public:
    virtual const ICudaEngine& getEngine() const noexcept = 0;

    virtual void setName(const AsciiChar* name) noexcept = 0;
    virtual const AsciiChar* getName() const noexcept = 0;

    virtual void setDeviceMemory(void* memory) noexcept = 0;

    TRT_DEPRECATED virtual Dims getStrides(std::int32_t bindingIndex) const noexcept = 0;

    virtual void setErrorRecorder(IErrorRecorder* recorder) noexcept = 0;
    virtual IErrorRecorder* getErrorRecorder() const noexcept = 0;

    TRT_DEPRECATED virtual bool enqueueV2(void* const* bindings, cudaStream_t stream,
                                          const cudaEvent_t* inputConsumed) noexcept = 0;

    IExecutionContext() = default;
    virtual ~IExecutionContext() noexcept = default;
    IExecutionContext(const IExecutionContext&) = delete;
    IExecutionContext(IExecutionContext&&) = delete;
    IExecutionContext& operator=(const IExecutionContext&) & = delete;
    IExecutionContext& operator=(IExecutionContext&&) & = delete;

    virtual void setErrorBuffer(FloatingPointErrorInformation* buffer) noexcept = 0;
    virtual FloatingPointErrorInformation* getErrorBuffer() const noexcept = 0;

    virtual Dims getTensorStrides(const AsciiChar* tensorName) const noexcept = 0;

    virtual bool setInputTensorAddress(const AsciiChar* tensorName, const void* data) noexcept = 0;

    virtual bool setOutputTensorAddress(const AsciiChar* tensorName, void* data) noexcept = 0;

    virtual bool setInputConsumedEvent(cudaEvent_t event) noexcept = 0;
    virtual cudaEvent_t getInputConsumedEvent() const noexcept = 0;

    virtual const void* getInputTensorAddress(const AsciiChar* tensorName) const noexcept = 0;

    virtual void* getOutputTensorAddress(const AsciiChar* tensorName) const noexcept = 0;

    virtual bool enqueueV3(cudaStream_t stream) noexcept = 0;
};

TENSORRTAPI IRuntime* createInferRuntime(ILogger& logger) noexcept;

extern "C" TENSORRTAPI IPluginRegistry* getSafePluginRegistry() noexcept;

template <typename T>
class PluginRegistrar
{
public:
    PluginRegistrar() { getSafePluginRegistry()->registerCreator(instance, ""); }

private:
    T instance{};
};

} // namespace safe
} // namespace nvinfer1

/// As REGISTER_TENSORRT_PLUGIN, with the registry of the safe runtime.
#define REGISTER_SAFE_TENSORRT_PLUGIN(name)                                                                            \
    static nvinfer1::safe::PluginRegistrar<name> pluginRegistrar##name {}

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif
