// SPDX-License-Identifier: Apache-2.0
// Everything that runs a built engine: runtime, engine, execution context, refitter, inspector, dynamic-shape plugins.
#ifndef TENSORWRIGHT_NV_INFER_RUNTIME_H
#define TENSORWRIGHT_NV_INFER_RUNTIME_H

#include "NvInferRuntimeCommon.h"

#if defined(__GNUC__)
// Deprecated names are declared with the help of other deprecated names; only uses in client code shall warn.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvinfer1 {

class ICudaEngine;
class IExecutionContext;
class IEngineInspector;

/// Of older releases; pointers to it are still parameters, and must be null.
class IPluginFactory;

/// Base of the objects that the library makes: never copied or moved.
class TENSORRTAPI INoCopy
{
protected:
    INoCopy() = default;
    virtual ~INoCopy() noexcept = default;
    INoCopy(INoCopy const&) = delete;
    INoCopy& operator=(INoCopy const&) = delete;
    INoCopy(INoCopy&&) = delete;
    INoCopy& operator=(INoCopy&&) = delete;
};

/// What kind of system an engine is for.
enum class EngineCapability : int32_t
{
    kSTANDARD = 0,                                   ///< No restriction.
    kDEFAULT TRT_DEPRECATED_ENUM = kSTANDARD,        ///< Old name of kSTANDARD.
    kSAFETY = 1,                                     ///< Only what the safe runtime can run.
    kSAFE_GPU TRT_DEPRECATED_ENUM = kSAFETY,         ///< Old name of kSAFETY.
    kDLA_STANDALONE = 2,                             ///< A DLA loadable that runs without this runtime.
    kSAFE_DLA TRT_DEPRECATED_ENUM = kDLA_STANDALONE, ///< Old name of kDLA_STANDALONE.
};

/// Number of values of EngineCapability.
template <>
constexpr int32_t EnumMax<EngineCapability>() noexcept
{
    return 3;
}

/// An array of constants in host memory. Not owned; it must stay valid until the engine is built.
class Weights
{
public:
    DataType type;      ///< Element type.
    void const* values; ///< First of count elements.
    int64_t count;      ///< Number of elements, not bytes; 0 for empty weights.
};

/// Host memory owned by the library, such as a serialized engine. Deleted by the client.
class TENSORRTAPI IHostMemory : public INoCopy
{
public:
    virtual ~IHostMemory() noexcept = default;

    /// First byte.
    void* data() const noexcept;

    /// Size in bytes.
    std::size_t size() const noexcept;

    /// Element type; kINT8 for bytes without meaning to the client.
    DataType type() const noexcept;

    /// Deletes the object; delete does the same.
    TRT_DEPRECATED void destroy() noexcept { delete this; }
};

/// Operations on dimensions, for output shapes of plugins.
enum class DimensionOperation : int32_t
{
    kSUM = 0,       ///< a + b.
    kPROD = 1,      ///< a * b.
    kMAX = 2,       ///< Larger of both.
    kMIN = 3,       ///< Smaller of both.
    kSUB = 4,       ///< a - b.
    kEQUAL = 5,     ///< 1 if equal, else 0.
    kLESS = 6,      ///< 1 if a < b, else 0.
    kFLOOR_DIV = 7, ///< a / b, rounded down.
    kCEIL_DIV = 8,  ///< a / b, rounded up.
};

/// Number of values of DimensionOperation.
template <>
constexpr int32_t EnumMax<DimensionOperation>() noexcept
{
    return 9;
}

/// Where the elements of a tensor are.
enum class TensorLocation : int32_t
{
    kDEVICE = 0, ///< In device memory.
    kHOST = 1,   ///< In host memory.
};

/// Number of values of TensorLocation.
template <>
constexpr int32_t EnumMax<TensorLocation>() noexcept
{
    return 2;
}

/// An integer expression over dimensions of a plugin's inputs. Made and owned by an IExprBuilder.
class TENSORRTAPI IDimensionExpr : public INoCopy
{
public:
    /// Whether the value is known while the engine is built.
    bool isConstant() const noexcept;

    /// The value if isConstant(), else the smallest int32_t.
    int32_t getConstantValue() const noexcept;

protected:
    virtual ~IDimensionExpr() noexcept = default;
};

/// Makes dimension expressions; valid during IPluginV2DynamicExt::getOutputDimensions() only.
class TENSORRTAPI IExprBuilder : public INoCopy
{
public:
    /// The expression of a number.
    IDimensionExpr const* constant(int32_t value) noexcept;

    /// op(first, second), or nullptr if op is not one of the enumeration.
    IDimensionExpr const* operation(DimensionOperation op, IDimensionExpr const& first,
                                    IDimensionExpr const& second) noexcept;

protected:
    virtual ~IExprBuilder() noexcept = default;
};

/// Dimensions that are expressions.
class DimsExprs
{
public:
    int32_t nbDims;                          ///< Rank.
    IDimensionExpr const* d[Dims::MAX_DIMS]; ///< Extent of each dimension.
};

/// An input or output of a plugin with the range of its shapes.
struct DynamicPluginTensorDesc
{
    PluginTensorDesc desc; ///< Description; a dimension that varies is -1.
    Dims min;              ///< Smallest extents.
    Dims max;              ///< Largest extents.
};

/// A plugin for explicit batch and shapes that vary at run time. The interface to choose for new plugins.
class TENSORRTAPI IPluginV2DynamicExt : public IPluginV2Ext
{
public:
    IPluginV2DynamicExt* clone() const noexcept override = 0;

    /// Dimensions of an output as expressions of the input dimensions.
    virtual DimsExprs getOutputDimensions(int32_t outputIndex, DimsExprs const* inputs, int32_t nbInputs,
                                          IExprBuilder& exprBuilder) noexcept = 0;

    /// Inputs and outputs together must not exceed this number.
    static constexpr int32_t kFORMAT_COMBINATION_LIMIT = 100;

    /// Whether the plugin takes inOut[pos], given that the descriptions before pos are accepted. Inputs come first;
    /// only inOut[0..pos] may be read; dimensions are not set.
    virtual bool supportsFormatCombination(int32_t pos, PluginTensorDesc const* inOut, int32_t nbInputs,
                                           int32_t nbOutputs) noexcept = 0;

    /// Tells types, formats and shape ranges; called while building and again before execution with the actual shapes.
    virtual void configurePlugin(DynamicPluginTensorDesc const* in, int32_t nbInputs,
                                 DynamicPluginTensorDesc const* out, int32_t nbOutputs) noexcept = 0;

    /// Bytes of scratch memory for shapes up to the given ones.
    virtual size_t getWorkspaceSize(PluginTensorDesc const* inputs, int32_t nbInputs, PluginTensorDesc const* outputs,
                                    int32_t nbOutputs) const noexcept = 0;

    /// Puts the work on the stream for the actual shapes. All addresses are device addresses. 0 means success.
    virtual int32_t enqueue(PluginTensorDesc const* inputDesc, PluginTensorDesc const* outputDesc,
                            void const* const* inputs, void* const* outputs, void* workspace,
                            cudaStream_t stream) noexcept = 0;

protected:
    int32_t getTensorRTVersion() const noexcept override
    {
        return static_cast<int32_t>((static_cast<uint32_t>(PluginVersion::kV2_DYNAMICEXT) << 24U) |
                                    (static_cast<uint32_t>(NV_TENSORRT_VERSION) & 0xFFFFFFU));
    }

    virtual ~IPluginV2DynamicExt() noexcept {}

private:
    void configurePlugin(Dims const*, int32_t, Dims const*, int32_t, DataType const*, DataType const*, bool const*,
                         bool const*, PluginFormat, int32_t) noexcept final
    {}

    bool supportsFormat(DataType, PluginFormat) const noexcept final { return false; }

    Dims getOutputDimensions(int32_t, Dims const*, int32_t) noexcept final { return Dims{-1, {}}; }

    bool isOutputBroadcastAcrossBatch(int32_t, bool const*, int32_t) const noexcept final { return false; }

    bool canBroadcastInputAcrossBatch(int32_t) const noexcept final { return true; }

    size_t getWorkspaceSize(int32_t) const noexcept final { return 0; }

    int32_t enqueue(int32_t, void const* const*, void* const*, void*, cudaStream_t) noexcept final { return 1; }
};

/// Receives the time of each layer of an execution.
class TENSORRTAPI IProfiler
{
public:
    /// Called once for each layer, in order of execution; ms is milliseconds.
    virtual void reportLayerTime(char const* layerName, float ms) noexcept = 0;

    virtual ~IProfiler() noexcept {}
};

/// What an array of weights is for its layer.
enum class WeightsRole : int32_t
{
    kKERNEL = 0,   ///< Kernel of a convolution, deconvolution or fully connected layer.
    kBIAS = 1,     ///< Bias of those.
    kSHIFT = 2,    ///< Shift of a scale layer.
    kSCALE = 3,    ///< Scale of a scale layer.
    kCONSTANT = 4, ///< Values of a constant layer.
    kANY = 5,      ///< Any role, for weights that go by their own name.
};

/// Number of values of WeightsRole.
template <>
constexpr int32_t EnumMax<WeightsRole>() noexcept
{
    return 6;
}

/// Device that runs a layer.
enum class DeviceType : int32_t
{
    kGPU = 0, ///< The main device: a GPU, or the CPU when that is the chosen device.
    kDLA = 1, ///< A DLA core.
};

/// Number of values of DeviceType.
template <>
constexpr int32_t EnumMax<DeviceType>() noexcept
{
    return 2;
}

/// Loads serialized engines. Must outlive the engines that it loads.
class TENSORRTAPI IRuntime : public INoCopy
{
public:
    virtual ~IRuntime() noexcept = default;

    /// Of older releases: pluginFactory must be null.
    TRT_DEPRECATED ICudaEngine* deserializeCudaEngine(void const* blob, std::size_t size,
                                                      IPluginFactory* pluginFactory) noexcept;

    /// DLA core, 0 to getNbDLACores() - 1, for engines deserialized after the call.
    void setDLACore(int32_t dlaCore) noexcept;
    int32_t getDLACore() const noexcept;

    /// Number of DLA cores, 0 where there are none.
    int32_t getNbDLACores() const noexcept;

    /// Deletes the object; delete does the same.
    TRT_DEPRECATED void destroy() noexcept { delete this; }

    /// Source of device memory for engines loaded after the call; nullptr restores the default.
    void setGpuAllocator(IGpuAllocator* allocator) noexcept;

    /// Recorder of the errors of this object; its reference count is raised until it is replaced. nullptr takes it
    /// away.
    void setErrorRecorder(IErrorRecorder* recorder) noexcept;
    IErrorRecorder* getErrorRecorder() const noexcept;

    /// The engine in blob, or nullptr with a logged reason. blob may be freed after the call.
    ICudaEngine* deserializeCudaEngine(void const* blob, std::size_t size) noexcept;

    ILogger* getLogger() const noexcept;

    /// Most threads that loading may use, the calling one included; false below 1. Default 1.
    bool setMaxThreads(int32_t maxThreads) noexcept;
    int32_t getMaxThreads() const noexcept;
};

/// Replaces weights of an engine that was built with BuilderFlag::kREFIT.
class TENSORRTAPI IRefitter : public INoCopy
{
public:
    virtual ~IRefitter() noexcept = default;

    /// New weights for a layer and role: same count and type as before, valid until refitCudaEngine() returns. False
    /// when there are no such weights or the count differs.
    bool setWeights(char const* layerName, WeightsRole role, Weights weights) noexcept;

    /// Applies what was set. False while getMissing() is not empty. Executions of the engine must not be running.
    bool refitCudaEngine() noexcept;

    /// Weights that must also be set before refitting, because they were combined with weights that are set. Writes up
    /// to size entries and gives their full number; the arrays may be null.
    int32_t getMissing(int32_t size, char const** layerNames, WeightsRole* roles) noexcept;

    /// All weights that can be replaced, in the manner of getMissing().
    int32_t getAll(int32_t size, char const** layerNames, WeightsRole* roles) noexcept;

    /// Deletes the object; delete does the same.
    TRT_DEPRECATED void destroy() noexcept { delete this; }

    /// New range of an INT8 tensor; false when the tensor had none or the numbers are not finite with min <= max.
    bool setDynamicRange(char const* tensorName, float min, float max) noexcept;

    /// Lower bound; NaN for an unknown tensor.
    float getDynamicRangeMin(char const* tensorName) const noexcept;

    /// Upper bound; NaN for an unknown tensor.
    float getDynamicRangeMax(char const* tensorName) const noexcept;

    /// Names of all tensors whose range can be replaced; gives their full number and writes up to size of them.
    int32_t getTensorsWithDynamicRange(int32_t size, char const** tensorNames) const noexcept;

    /// Recorder of the errors of this object; its reference count is raised until it is replaced. nullptr takes it
    /// away.
    void setErrorRecorder(IErrorRecorder* recorder) noexcept;
    IErrorRecorder* getErrorRecorder() const noexcept;

    /// As setWeights() for weights that INetworkDefinition::setWeightsName() named.
    bool setNamedWeights(char const* name, Weights weights) noexcept;

    /// As getMissing(), names of weights.
    int32_t getMissingWeights(int32_t size, char const** weightsNames) noexcept;

    /// As getAll(), names of weights.
    int32_t getAllWeights(int32_t size, char const** weightsNames) noexcept;

    ILogger* getLogger() const noexcept;

    /// Most threads that refitting may use, the calling one included; false below 1. Default 1.
    bool setMaxThreads(int32_t maxThreads) noexcept;
    int32_t getMaxThreads() const noexcept;
};

/// One of the three points of an optimization profile.
enum class OptProfileSelector : int32_t
{
    kMIN = 0, ///< Smallest extents or values at run time.
    kOPT = 1, ///< What the engine is tuned for.
    kMAX = 2, ///< Largest extents or values at run time.
};

/// Number of values of OptProfileSelector.
template <>
constexpr int32_t EnumMax<OptProfileSelector>() noexcept
{
    return 3;
}

/// Ranges of the dynamic input dimensions and of the values of input shape tensors. Owned by the builder.
class TENSORRTAPI IOptimizationProfile : public INoCopy
{
public:
    /// One of the three points for an input; fixed dimensions must be repeated. False when min <= opt <= max cannot
    /// hold any more.
    bool setDimensions(char const* inputName, OptProfileSelector select, Dims dims) noexcept;

    /// The point that was set, or nbDims -1.
    Dims getDimensions(char const* inputName, OptProfileSelector select) const noexcept;

    /// One of the three points for an input shape tensor of nbValues elements; the values are copied.
    bool setShapeValues(char const* inputName, OptProfileSelector select, int32_t const* values,
                        int32_t nbValues) noexcept;

    /// Number of values that were set, or -1.
    int32_t getNbShapeValues(char const* inputName) const noexcept;

    /// The values that were set, or nullptr. Owned by the profile.
    int32_t const* getShapeValues(char const* inputName, OptProfileSelector select) const noexcept;

    /// Extra device memory this profile may use, 0 to 1 as a share of the free memory. Default 1; false outside that
    /// range.
    bool setExtraMemoryTarget(float target) noexcept;
    float getExtraMemoryTarget() const noexcept;

    /// Whether the points that are set agree with each other. The builder checks against the network later.
    bool isValid() const noexcept;

protected:
    virtual ~IOptimizationProfile() noexcept = default;
};

/// Origin of kernels that the builder may choose from.
enum class TacticSource : int32_t
{
    kCUBLAS = 0,                 ///< cuBLAS.
    kCUBLAS_LT = 1,              ///< cuBLASLt.
    kCUDNN = 2,                  ///< cuDNN.
    kEDGE_MASK_CONVOLUTIONS = 3, ///< Convolutions that treat the image border with precomputed masks.
    kJIT_CONVOLUTIONS = 4,       ///< Convolutions compiled while the engine is built.
};

/// Number of values of TacticSource.
template <>
constexpr int32_t EnumMax<TacticSource>() noexcept
{
    return 5;
}

/// Bit mask: bit i is the TacticSource of value i.
using TacticSources = uint32_t;

/// How much an engine knows of its layers for profilers and the inspector.
enum class ProfilingVerbosity : int32_t
{
    kLAYER_NAMES_ONLY = 0,                            ///< Names of the layers.
    kNONE = 1,                                        ///< Nothing.
    kDETAILED = 2,                                    ///< Names, parameters, formats and tactics.
    kDEFAULT TRT_DEPRECATED_ENUM = kLAYER_NAMES_ONLY, ///< Old name of kLAYER_NAMES_ONLY.
    kVERBOSE TRT_DEPRECATED_ENUM = kDETAILED,         ///< Old name of kDETAILED.
};

/// Number of values of ProfilingVerbosity.
template <>
constexpr int32_t EnumMax<ProfilingVerbosity>() noexcept
{
    return 3;
}

/// A built network: read-only, shared by any number of execution contexts. Must outlive them.
/// Inputs and outputs go by tensor name, or by binding index in the older methods. With n optimization profiles and b
/// inputs and outputs there are n * b bindings; profile p owns those from p * b on.
class TENSORRTAPI ICudaEngine : public INoCopy
{
public:
    virtual ~ICudaEngine() noexcept = default;

    /// Number of bindings over all profiles.
    TRT_DEPRECATED int32_t getNbBindings() const noexcept;

    /// Binding of a name in the first profile, or -1. Names of other profiles end in " [profile p]".
    TRT_DEPRECATED int32_t getBindingIndex(char const* name) const noexcept;

    /// Name of a binding, or nullptr for an index out of range.
    TRT_DEPRECATED char const* getBindingName(int32_t bindingIndex) const noexcept;

    /// Whether the binding is an input.
    TRT_DEPRECATED bool bindingIsInput(int32_t bindingIndex) const noexcept;

    /// Dimensions of a binding, -1 for those that vary; nbDims -1 for an index out of range.
    TRT_DEPRECATED Dims getBindingDimensions(int32_t bindingIndex) const noexcept;

    /// Dimensions of an input or output, -1 for those that vary; nbDims -1 for an unknown name.
    Dims getTensorShape(char const* tensorName) const noexcept;

    TRT_DEPRECATED DataType getBindingDataType(int32_t bindingIndex) const noexcept;

    /// Element type of an input or output; kFLOAT for an unknown name.
    DataType getTensorDataType(char const* tensorName) const noexcept;

    /// Largest batch of an implicit batch engine; 1 with explicit batch.
    TRT_DEPRECATED int32_t getMaxBatchSize() const noexcept;

    /// Layers after optimization, counted once for each optimization profile; fusion makes it differ from the network's
    /// number. A run reports those of its profile: getNbLayers() / getNbOptimizationProfiles() of them.
    int32_t getNbLayers() const noexcept;

    /// The engine as bytes for IRuntime::deserializeCudaEngine(). The caller deletes the memory.
    IHostMemory* serialize() const noexcept;

    /// A context with its own device memory, which the caller deletes; nullptr on failure.
    IExecutionContext* createExecutionContext() noexcept;

    /// Deletes the object; delete does the same.
    TRT_DEPRECATED void destroy() noexcept { delete this; }

    /// Whether a binding is read from the host or the device.
    TRT_DEPRECATED TensorLocation getLocation(int32_t bindingIndex) const noexcept;

    /// kHOST for tensors whose values determine shapes, else kDEVICE.
    TensorLocation getTensorLocation(char const* tensorName) const noexcept;

    /// Whether the tensor's values are needed for, or come from, the computation of shapes.
    bool isShapeInferenceIO(char const* tensorName) const noexcept;

    /// Input, output, or kNONE for an unknown name.
    TensorIOMode getTensorIOMode(char const* tensorName) const noexcept;

    /// A context that needs setDeviceMemory() before it runs. The caller deletes it.
    IExecutionContext* createExecutionContextWithoutDeviceMemory() noexcept;

    /// Bytes of device memory that a context needs, for all profiles.
    size_t getDeviceMemorySize() const noexcept;

    /// Whether an IRefitter can replace weights.
    bool isRefittable() const noexcept;

    /// Bytes of one component of a vectorized format.
    TRT_DEPRECATED int32_t getBindingBytesPerComponent(int32_t bindingIndex) const noexcept;

    /// Bytes of one component of a vectorized format; -1 for an unknown name.
    int32_t getTensorBytesPerComponent(char const* tensorName) const noexcept;

    /// Vector length of the format; 1 without vectors.
    TRT_DEPRECATED int32_t getBindingComponentsPerElement(int32_t bindingIndex) const noexcept;

    /// Vector length of the format, 1 without vectors; -1 for an unknown name.
    int32_t getTensorComponentsPerElement(char const* tensorName) const noexcept;

    TRT_DEPRECATED TensorFormat getBindingFormat(int32_t bindingIndex) const noexcept;

    /// Memory format; kLINEAR for an unknown name.
    TensorFormat getTensorFormat(char const* tensorName) const noexcept;

    /// Type and format as text for people.
    TRT_DEPRECATED char const* getBindingFormatDesc(int32_t bindingIndex) const noexcept;

    /// Type and format as text for people.
    char const* getTensorFormatDesc(char const* tensorName) const noexcept;

    /// Dimension that the format splits into vectors, or -1.
    TRT_DEPRECATED int32_t getBindingVectorizedDim(int32_t bindingIndex) const noexcept;

    /// Dimension that the format splits into vectors, or -1.
    int32_t getTensorVectorizedDim(char const* tensorName) const noexcept;

    /// Name of the network that the engine was built from.
    char const* getName() const noexcept;

    /// Number of optimization profiles, at least 1.
    int32_t getNbOptimizationProfiles() const noexcept;

    /// A point of the profile for an input binding; nbDims -1 on wrong arguments.
    TRT_DEPRECATED Dims getProfileDimensions(int32_t bindingIndex, int32_t profileIndex,
                                             OptProfileSelector select) const noexcept;

    /// A point of the profile for an input; nbDims -1 on wrong arguments.
    Dims getProfileShape(char const* tensorName, int32_t profileIndex, OptProfileSelector select) const noexcept;

    /// Values of a point of the profile for an input shape tensor, or nullptr. Owned by the engine.
    TRT_DEPRECATED int32_t const* getProfileShapeValues(int32_t profileIndex, int32_t inputIndex,
                                                        OptProfileSelector select) const noexcept;

    /// Whether the binding's values determine shapes.
    TRT_DEPRECATED bool isShapeBinding(int32_t bindingIndex) const noexcept;

    /// Whether the binding's elements are needed on the device.
    TRT_DEPRECATED bool isExecutionBinding(int32_t bindingIndex) const noexcept;

    EngineCapability getEngineCapability() const noexcept;

    /// Recorder of the errors of this object; its reference count is raised until it is replaced. nullptr takes it
    /// away.
    void setErrorRecorder(IErrorRecorder* recorder) noexcept;
    IErrorRecorder* getErrorRecorder() const noexcept;

    /// Whether every tensor has a batch dimension that its shape leaves out.
    bool hasImplicitBatchDimension() const noexcept;

    /// Sources that were allowed when the engine was built.
    TacticSources getTacticSources() const noexcept;

    ProfilingVerbosity getProfilingVerbosity() const noexcept;

    /// Describes the engine's layers. The caller deletes it.
    IEngineInspector* createEngineInspector() const noexcept;

    /// Number of inputs and outputs.
    int32_t getNbIOTensors() const noexcept;

    /// Name of input or output index, inputs and outputs in engine order; nullptr out of range.
    char const* getIOTensorName(int32_t index) const noexcept;
};

/// Memory for an output whose size is known only while the engine runs. Called in the enqueuing thread.
class TENSORRTAPI IOutputAllocator
{
public:
    /// Version of this interface that the class implements; not meant to be overridden by users.
    virtual int32_t getInterfaceVersion() const noexcept { return 1; }

    /// Device memory of size bytes at a multiple of alignment. currentMemory is what the output has now and may be
    /// given again if it is large enough; nullptr fails the run.
    virtual void* reallocateOutput(char const* tensorName, void* currentMemory, uint64_t size,
                                   uint64_t alignment) noexcept = 0;

    /// Tells the output's actual dimensions.
    virtual void notifyShape(char const* tensorName, Dims const& dims) noexcept = 0;

    virtual ~IOutputAllocator() noexcept = default;
};

/// One running instance of an engine: shapes, addresses and device memory. Used by one thread at a time.
class TENSORRTAPI IExecutionContext : public INoCopy
{
public:
    virtual ~IExecutionContext() noexcept = default;

    /// Runs an implicit batch engine and waits. bindings holds one address for each binding.
    TRT_DEPRECATED bool execute(int32_t batchSize, void* const* bindings) noexcept;

    /// Puts a run of an implicit batch engine on the stream. inputConsumed, if given, is recorded when the inputs may
    /// be overwritten.
    TRT_DEPRECATED bool enqueue(int32_t batchSize, void* const* bindings, cudaStream_t stream,
                                cudaEvent_t* inputConsumed) noexcept;

    /// Whether to wait for the stream after each layer, which finds the layer that fails.
    void setDebugSync(bool sync) noexcept;
    bool getDebugSync() const noexcept;

    /// Receives layer times; nullptr ends that.
    void setProfiler(IProfiler* profiler) noexcept;
    IProfiler* getProfiler() const noexcept;

    ICudaEngine const& getEngine() const noexcept;

    /// Deletes the object; delete does the same.
    TRT_DEPRECATED void destroy() noexcept { delete this; }

    /// Name of the context for tools; copied.
    void setName(char const* name) noexcept;
    char const* getName() const noexcept;

    /// Memory of at least getDeviceMemorySize() bytes, aligned to 256 bytes, for a context made without. Not changed
    /// while a run is in flight.
    void setDeviceMemory(void* memory) noexcept;

    /// Strides of a binding in elements, or in vectors for vectorized formats.
    TRT_DEPRECATED Dims getStrides(int32_t bindingIndex) const noexcept;

    /// Strides in elements, or in vectors for vectorized formats; nbDims -1 for an unknown name.
    Dims getTensorStrides(char const* tensorName) const noexcept;

    /// Chooses the profile, which no other context may be using. Waits for the device.
    TRT_DEPRECATED bool setOptimizationProfile(int32_t profileIndex) noexcept;

    /// Chosen profile, or -1.
    int32_t getOptimizationProfile() const noexcept;

    /// Shape of an input binding; false outside the profile's range.
    TRT_DEPRECATED bool setBindingDimensions(int32_t bindingIndex, Dims dimensions) noexcept;

    /// Shape of an input; false outside the profile's range or for an unknown name.
    bool setInputShape(char const* tensorName, Dims const& dims) noexcept;

    /// Shape of a binding under the present input shapes; -1 for what is not determined.
    TRT_DEPRECATED Dims getBindingDimensions(int32_t bindingIndex) const noexcept;

    /// Shape under the present input shapes; -1 for what is not determined, nbDims -1 for an unknown name.
    Dims getTensorShape(char const* tensorName) const noexcept;

    /// Values of an input shape tensor, copied from host memory.
    TRT_DEPRECATED bool setInputShapeBinding(int32_t bindingIndex, int32_t const* data) noexcept;

    /// Copies the values of a shape tensor to data; false while they are not determined.
    TRT_DEPRECATED bool getShapeBinding(int32_t bindingIndex, int32_t* data) const noexcept;

    /// Whether every dynamic input has a shape.
    bool allInputDimensionsSpecified() const noexcept;

    /// Whether every input shape tensor has values.
    bool allInputShapesSpecified() const noexcept;

    /// Recorder of the errors of this object; its reference count is raised until it is replaced. nullptr takes it
    /// away.
    void setErrorRecorder(IErrorRecorder* recorder) noexcept;
    IErrorRecorder* getErrorRecorder() const noexcept;

    /// Runs an explicit batch engine and waits. bindings holds one address for each binding.
    bool executeV2(void* const* bindings) noexcept;

    /// Puts a run of an explicit batch engine on the stream. inputConsumed, if given, is recorded when the inputs may
    /// be overwritten.
    TRT_DEPRECATED bool enqueueV2(void* const* bindings, cudaStream_t stream, cudaEvent_t* inputConsumed) noexcept;

    /// Chooses the profile; copies go on the stream, and runs on other streams must wait for it.
    bool setOptimizationProfileAsync(int32_t profileIndex, cudaStream_t stream) noexcept;

    /// Whether each enqueue reports to the profiler, which makes it wait. Default true; with false reportToProfiler()
    /// does it.
    void setEnqueueEmitsProfile(bool enqueueEmitsProfile) noexcept;
    bool getEnqueueEmitsProfile() const noexcept;

    /// Waits for the last enqueue and reports its layer times. False without a profiler or a run.
    bool reportToProfiler() const noexcept;

    /// Address of an input or output for enqueueV3(), aligned to 256 bytes; false for an unknown name.
    bool setTensorAddress(char const* tensorName, void* data) noexcept;

    /// Address that was set, or nullptr.
    void const* getTensorAddress(char const* tensorName) const noexcept;

    /// As setTensorAddress() for an input in memory that must not be written.
    bool setInputTensorAddress(char const* tensorName, void const* data) noexcept;

    /// Address of an output, or nullptr when it is not set or not an output.
    void* getOutputTensorAddress(char const* tensorName) const noexcept;

    /// Computes shapes and values that follow from the present inputs. Gives the number of inputs that are not yet
    /// sufficiently set and writes up to nbMaxNames of their names; 0 means complete, negative another error.
    int32_t inferShapes(int32_t nbMaxNames, char const** tensorNames) noexcept;

    /// Event that enqueueV3() records when the inputs may be overwritten; nullptr for none.
    bool setInputConsumedEvent(cudaEvent_t event) noexcept;
    cudaEvent_t getInputConsumedEvent() const noexcept;

    /// Allocator of one output, used instead of its address; nullptr takes it away. False if not an output.
    bool setOutputAllocator(char const* tensorName, IOutputAllocator* outputAllocator) noexcept;
    IOutputAllocator* getOutputAllocator(char const* tensorName) const noexcept;

    /// Upper bound in bytes of an output under the present input shapes; negative when unknown.
    int64_t getMaxOutputSize(char const* tensorName) const noexcept;

    /// Source of scratch memory during a run; nullptr restores the engine's allocator.
    bool setTemporaryStorageAllocator(IGpuAllocator* allocator) noexcept;
    IGpuAllocator* getTemporaryStorageAllocator() const noexcept;

    /// Puts a run on the stream with the tensor addresses that are set. False when a shape, address or allocator is
    /// missing.
    bool enqueueV3(cudaStream_t stream) noexcept;

    /// Bytes of persistent L2 cache that a run may use. Default 0.
    void setPersistentCacheLimit(size_t size) noexcept;
    size_t getPersistentCacheLimit() const noexcept;

    /// Detail of the ranges shown to tracing tools; false above what the engine was built with.
    bool setNvtxVerbosity(ProfilingVerbosity verbosity) noexcept;
    ProfilingVerbosity getNvtxVerbosity() const noexcept;
};

/// Form of the inspector's texts.
enum class LayerInformationFormat : int32_t
{
    kONELINE = 0, ///< One line for each layer.
    kJSON = 1,    ///< JSON.
};

/// Number of values of LayerInformationFormat.
template <>
constexpr int32_t EnumMax<LayerInformationFormat>() noexcept
{
    return 2;
}

/// Describes an engine's layers. Strings are owned by it and valid until the next call of the same method.
class TENSORRTAPI IEngineInspector : public INoCopy
{
public:
    virtual ~IEngineInspector() noexcept = default;

    /// Describe with the actual shapes of this context; nullptr for the engine alone. False for a context of another
    /// engine.
    bool setExecutionContext(IExecutionContext const* context) noexcept;
    IExecutionContext const* getExecutionContext() const noexcept;

    /// Description of one layer, 0 to ICudaEngine::getNbLayers() - 1.
    char const* getLayerInformation(int32_t layerIndex, LayerInformationFormat format) const noexcept;

    /// Description of all layers and of the inputs and outputs.
    char const* getEngineInformation(LayerInformationFormat format) const noexcept;

    /// Recorder of the errors of this object; its reference count is raised until it is replaced. nullptr takes it
    /// away.
    void setErrorRecorder(IErrorRecorder* recorder) noexcept;
    IErrorRecorder* getErrorRecorder() const noexcept;
};

} // namespace nvinfer1

/// Exported side of createInferRuntime().
extern "C" TENSORRTAPI void* createInferRuntime_INTERNAL(void* logger, int32_t version) noexcept;

/// Exported side of createInferRefitter().
extern "C" TENSORRTAPI void* createInferRefitter_INTERNAL(void* engine, void* logger, int32_t version) noexcept;

/// The registry of the process.
extern "C" TENSORRTAPI nvinfer1::IPluginRegistry* getPluginRegistry() noexcept;

/// The logger that was given to the first builder, runtime or refitter, or nullptr.
extern "C" TENSORRTAPI nvinfer1::ILogger* getLogger() noexcept;

namespace nvinfer1 {

namespace {

/// A runtime, or nullptr. The caller deletes it; logger must outlive it.
inline IRuntime* createInferRuntime(ILogger& logger) noexcept
{
    return static_cast<IRuntime*>(createInferRuntime_INTERNAL(&logger, NV_TENSORRT_VERSION + tensorwright_abi_8_5));
}

/// A refitter of engine, or nullptr. The caller deletes it; engine and logger must outlive it.
inline IRefitter* createInferRefitter(ICudaEngine& engine, ILogger& logger) noexcept
{
    return static_cast<IRefitter*>(
        createInferRefitter_INTERNAL(&engine, &logger, NV_TENSORRT_VERSION + tensorwright_abi_8_5));
}

} // namespace

/// Registers a creator of type T with getPluginRegistry(), in the namespace "". One static object for each creator,
/// usually through REGISTER_TENSORRT_PLUGIN.
template <typename T>
class PluginRegistrar
{
public:
    PluginRegistrar() { getPluginRegistry()->registerCreator(instance, ""); }

private:
    T instance{};
};

} // namespace nvinfer1

/// Registers the plugin creator class name with the plugin registry when the program or library is loaded. Stands at
/// namespace scope; name is one identifier; the user writes the semicolon.
#define REGISTER_TENSORRT_PLUGIN(name)                                                                                 \
    static nvinfer1::PluginRegistrar<name> pluginRegistrar##name {}

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif
