// SPDX-License-Identifier: Apache-2.0
// The reduced runtime for safety-critical systems: abstract classes and the entry points of libnvinfer_safe.
#ifndef TENSORWRIGHT_NV_INFER_SAFE_RUNTIME_H
#define TENSORWRIGHT_NV_INFER_SAFE_RUNTIME_H

#include <cstddef>
#include <cstdint>

#include "NvInferRuntimeCommon.h"

#if defined(__GNUC__)
// Deprecated names are declared with the help of other deprecated names; only uses in client code shall warn.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvinfer1 {
namespace safe {

class ICudaEngine;
class IExecutionContext;

/// Loads engines built with EngineCapability::kSAFETY.
class TENSORRTAPI IRuntime
{
public:
    /// The engine in blob, or nullptr. blob may be freed after the call.
    virtual ICudaEngine* deserializeCudaEngine(void const* blob, std::size_t size) noexcept = 0;

    /// Source of device memory for engines loaded after the call; nullptr restores the default.
    virtual void setGpuAllocator(IGpuAllocator* allocator) noexcept = 0;

    /// Recorder of the errors of this object; its reference count is raised until it is replaced. nullptr takes it
    /// away.
    virtual void setErrorRecorder(IErrorRecorder* recorder) noexcept = 0;
    virtual IErrorRecorder* getErrorRecorder() const noexcept = 0;

    IRuntime() = default;
    virtual ~IRuntime() noexcept = default;
    IRuntime(IRuntime const&) = delete;
    IRuntime(IRuntime&&) = delete;
    IRuntime& operator=(IRuntime const&) & = delete;
    IRuntime& operator=(IRuntime&&) & = delete;
};

/// A built safety engine; see nvinfer1::ICudaEngine for the methods.
class TENSORRTAPI ICudaEngine
{
public:
    /// Number of bindings over all profiles.
    TRT_DEPRECATED virtual std::int32_t getNbBindings() const noexcept = 0;

    /// Binding of a name in the first profile, or -1. Names of other profiles end in " [profile p]".
    TRT_DEPRECATED virtual std::int32_t getBindingIndex(AsciiChar const* name) const noexcept = 0;

    /// Name of a binding, or nullptr for an index out of range.
    TRT_DEPRECATED virtual AsciiChar const* getBindingName(std::int32_t bindingIndex) const noexcept = 0;

    /// Whether the binding is an input.
    TRT_DEPRECATED virtual bool bindingIsInput(std::int32_t bindingIndex) const noexcept = 0;

    /// Dimensions of a binding, -1 for those that vary; nbDims -1 for an index out of range.
    TRT_DEPRECATED virtual Dims getBindingDimensions(std::int32_t bindingIndex) const noexcept = 0;

    TRT_DEPRECATED virtual DataType getBindingDataType(std::int32_t bindingIndex) const noexcept = 0;

    /// A context with its own device memory, which the caller deletes; nullptr on failure.
    virtual IExecutionContext* createExecutionContext() noexcept = 0;

    /// A context that needs setDeviceMemory() before it runs. The caller deletes it.
    virtual IExecutionContext* createExecutionContextWithoutDeviceMemory() noexcept = 0;

    /// Bytes of device memory that a context needs, for all profiles.
    virtual size_t getDeviceMemorySize() const noexcept = 0;

    /// Bytes of one component of a vectorized format.
    TRT_DEPRECATED virtual std::int32_t getBindingBytesPerComponent(std::int32_t bindingIndex) const noexcept = 0;

    /// Vector length of the format; 1 without vectors.
    TRT_DEPRECATED virtual std::int32_t getBindingComponentsPerElement(std::int32_t bindingIndex) const noexcept = 0;

    TRT_DEPRECATED virtual TensorFormat getBindingFormat(std::int32_t bindingIndex) const noexcept = 0;

    /// Dimension that the format splits into vectors, or -1.
    TRT_DEPRECATED virtual std::int32_t getBindingVectorizedDim(std::int32_t bindingIndex) const noexcept = 0;

    /// Name of the network that the engine was built from.
    virtual AsciiChar const* getName() const noexcept = 0;

    /// Recorder of the errors of this object; its reference count is raised until it is replaced. nullptr takes it
    /// away.
    virtual void setErrorRecorder(IErrorRecorder* recorder) noexcept = 0;
    virtual IErrorRecorder* getErrorRecorder() const noexcept = 0;

    ICudaEngine() = default;
    virtual ~ICudaEngine() noexcept = default;
    ICudaEngine(ICudaEngine const&) = delete;
    ICudaEngine(ICudaEngine&&) = delete;
    ICudaEngine& operator=(ICudaEngine const&) & = delete;
    ICudaEngine& operator=(ICudaEngine&&) & = delete;

    /// Dimensions of an input or output, -1 for those that vary; nbDims -1 for an unknown name.
    virtual Dims getTensorShape(AsciiChar const* tensorName) const noexcept = 0;

    /// Element type of an input or output; kFLOAT for an unknown name.
    virtual DataType getTensorDataType(AsciiChar const* tensorName) const noexcept = 0;

    /// Input, output, or kNONE for an unknown name.
    virtual TensorIOMode getTensorIOMode(AsciiChar const* tensorName) const noexcept = 0;

    /// Bytes of one component of a vectorized format; -1 for an unknown name.
    virtual std::int32_t getTensorBytesPerComponent(AsciiChar const* tensorName) const noexcept = 0;

    /// Vector length of the format, 1 without vectors; -1 for an unknown name.
    virtual std::int32_t getTensorComponentsPerElement(AsciiChar const* tensorName) const noexcept = 0;

    /// Memory format; kLINEAR for an unknown name.
    virtual TensorFormat getTensorFormat(AsciiChar const* tensorName) const noexcept = 0;

    /// Dimension that the format splits into vectors, or -1.
    virtual std::int32_t getTensorVectorizedDim(AsciiChar const* tensorName) const noexcept = 0;

    /// Number of inputs and outputs.
    virtual std::int32_t getNbIOTensors() const noexcept = 0;

    /// Name of input or output index, inputs and outputs in engine order; nullptr out of range.
    virtual AsciiChar const* getIOTensorName(std::int32_t index) const noexcept = 0;
};

/// Counts of invalid results of a run.
struct FloatingPointErrorInformation
{
    int32_t nbNanErrors; ///< Results that are NaN.
    int32_t nbInfErrors; ///< Results that are infinite.
};

/// One running instance of a safety engine; see nvinfer1::IExecutionContext for the methods.
class TENSORRTAPI IExecutionContext
{
public:
    virtual ICudaEngine const& getEngine() const noexcept = 0;

    /// Name of the context for tools; copied.
    virtual void setName(AsciiChar const* name) noexcept = 0;
    virtual AsciiChar const* getName() const noexcept = 0;

    /// Memory of at least getDeviceMemorySize() bytes, aligned to 256 bytes, for a context made without. Not changed
    /// while a run is in flight.
    virtual void setDeviceMemory(void* memory) noexcept = 0;

    /// Strides of a binding in elements, or in vectors for vectorized formats.
    TRT_DEPRECATED virtual Dims getStrides(std::int32_t bindingIndex) const noexcept = 0;

    /// Recorder of the errors of this object; its reference count is raised until it is replaced. nullptr takes it
    /// away.
    virtual void setErrorRecorder(IErrorRecorder* recorder) noexcept = 0;
    virtual IErrorRecorder* getErrorRecorder() const noexcept = 0;

    /// Puts a run of an explicit batch engine on the stream. inputConsumed, if given, is recorded when the inputs may
    /// be overwritten.
    TRT_DEPRECATED virtual bool enqueueV2(void* const* bindings, cudaStream_t stream,
                                          cudaEvent_t const* inputConsumed) noexcept = 0;

    IExecutionContext() = default;
    virtual ~IExecutionContext() noexcept = default;
    IExecutionContext(IExecutionContext const&) = delete;
    IExecutionContext(IExecutionContext&&) = delete;
    IExecutionContext& operator=(IExecutionContext const&) & = delete;
    IExecutionContext& operator=(IExecutionContext&&) & = delete;

    /// Device memory that receives the counts of a run; nullptr for none.
    virtual void setErrorBuffer(FloatingPointErrorInformation* buffer) noexcept = 0;
    virtual FloatingPointErrorInformation* getErrorBuffer() const noexcept = 0;

    /// Strides in elements, or in vectors for vectorized formats; nbDims -1 for an unknown name.
    virtual Dims getTensorStrides(AsciiChar const* tensorName) const noexcept = 0;

    /// As setTensorAddress() for an input in memory that must not be written.
    virtual bool setInputTensorAddress(AsciiChar const* tensorName, void const* data) noexcept = 0;

    /// Address of an output for enqueueV3(); false for an unknown name.
    virtual bool setOutputTensorAddress(AsciiChar const* tensorName, void* data) noexcept = 0;

    /// Event that enqueueV3() records when the inputs may be overwritten; nullptr for none.
    virtual bool setInputConsumedEvent(cudaEvent_t event) noexcept = 0;
    virtual cudaEvent_t getInputConsumedEvent() const noexcept = 0;

    virtual void const* getInputTensorAddress(AsciiChar const* tensorName) const noexcept = 0;

    /// Address of an output, or nullptr when it is not set or not an output.
    virtual void* getOutputTensorAddress(AsciiChar const* tensorName) const noexcept = 0;

    /// Puts a run on the stream with the tensor addresses that are set. False when a shape, address or allocator is
    /// missing.
    virtual bool enqueueV3(cudaStream_t stream) noexcept = 0;
};

/// A safe runtime, or nullptr. The caller deletes it.
TENSORRTAPI IRuntime* createInferRuntime(ILogger& logger) noexcept;

/// The registry of the safe runtime.
extern "C" TENSORRTAPI IPluginRegistry* getSafePluginRegistry() noexcept;

/// Registers a creator of type T with getSafePluginRegistry(), in the namespace "".
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
