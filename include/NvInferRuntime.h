// SPDX-License-Identifier: Apache-2.0
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

class IPluginFactory;

class TENSORRTAPI INoCopy
{
protected:
    INoCopy() = default;
    virtual ~INoCopy() noexcept = default;
    INoCopy(const INoCopy&) = delete;
    INoCopy& operator=(const INoCopy&) = delete;
    INoCopy(INoCopy&&) = delete;
    INoCopy& operator=(INoCopy&&) = delete;
};

enum class EngineCapability : int32_t
{
    kSTANDARD = 0,
    kDEFAULT TRT_DEPRECATED_ENUM = kSTANDARD, ///< Old name of kSTANDARD.
    kSAFETY = 1,
    kSAFE_GPU TRT_DEPRECATED_ENUM = kSAFETY, ///< Old name of kSAFETY.
    kDLA_STANDALONE = 2,
    kSAFE_DLA TRT_DEPRECATED_ENUM = kDLA_STANDALONE, ///< Old name of kDLA_STANDALONE.
};

/// Number of values of EngineCapability.
template <>
constexpr int32_t EnumMax<EngineCapability>() noexcept
{
    return 3;
}

class Weights
{
public:
    DataType type;
    const void* values;
    int64_t count;
};

class TENSORRTAPI IHostMemory : public INoCopy
{
public:
    virtual ~IHostMemory() noexcept = default;

    void* data() const noexcept;

    std::size_t size() const noexcept;

    DataType type() const noexcept;

    TRT_DEPRECATED void destroy() noexcept { delete this; }
};

enum class DimensionOperation : int32_t
{
    kSUM = 0,
    kPROD = 1,
    kMAX = 2,
    kMIN = 3,
    kSUB = 4,
    kEQUAL = 5,
    kLESS = 6,
    kFLOOR_DIV = 7,
    kCEIL_DIV = 8,
};

/// Number of values of DimensionOperation.
template <>
constexpr int32_t EnumMax<DimensionOperation>() noexcept
{
    return 9;
}

enum class TensorLocation : int32_t
{
    kDEVICE = 0,
    kHOST = 1,
};

/// Number of values of TensorLocation.
template <>
constexpr int32_t EnumMax<TensorLocation>() noexcept
{
    return 2;
}

class TENSORRTAPI IDimensionExpr : public INoCopy
{
public:
    bool isConstant() const noexcept;

    int32_t getConstantValue() const noexcept;

protected:
    virtual ~IDimensionExpr() noexcept = default;
};

class TENSORRTAPI IExprBuilder : public INoCopy
{
public:
    const IDimensionExpr* constant(int32_t value) noexcept;

    const IDimensionExpr* operation(DimensionOperation op, const IDimensionExpr& first,
                                    const IDimensionExpr& second) noexcept;

protected:
    virtual ~IExprBuilder() noexcept = default;
};

class DimsExprs
{
public:
    int32_t nbDims;
    const IDimensionExpr* d[Dims::MAX_DIMS];
};

struct DynamicPluginTensorDesc
{
    PluginTensorDesc desc;
    Dims min;
    Dims max;
};

class TENSORRTAPI IPluginV2DynamicExt : public IPluginV2Ext
{
public:
    IPluginV2DynamicExt* clone() const noexcept override = 0;

    virtual DimsExprs getOutputDimensions(int32_t outputIndex, const DimsExprs* inputs, int32_t nbInputs,
                                          IExprBuilder& exprBuilder) noexcept = 0;

    static constexpr int32_t kFORMAT_COMBINATION_LIMIT = 100;

    virtual bool supportsFormatCombination(int32_t pos, const PluginTensorDesc* inOut, int32_t nbInputs,
                                           int32_t nbOutputs) noexcept = 0;

    virtual void configurePlugin(const DynamicPluginTensorDesc* in, int32_t nbInputs,
                                 const DynamicPluginTensorDesc* out, int32_t nbOutputs) noexcept = 0;

    virtual size_t getWorkspaceSize(const PluginTensorDesc* inputs, int32_t nbInputs, const PluginTensorDesc* outputs,
                                    int32_t nbOutputs) const noexcept = 0;

    virtual int32_t enqueue(const PluginTensorDesc* inputDesc, const PluginTensorDesc* outputDesc,
                            const void* const* inputs, void* const* outputs, void* workspace,
                            cudaStream_t stream) noexcept = 0;

protected:
    int32_t getTensorRTVersion() const noexcept override
    {
        return static_cast<int32_t>((static_cast<uint32_t>(PluginVersion::kV2_DYNAMICEXT) << 24U) |
                                    (static_cast<uint32_t>(NV_TENSORRT_VERSION) & 0xFFFFFFU));
    }

    virtual ~IPluginV2DynamicExt() noexcept {}

private:
    void configurePlugin(const Dims*, int32_t, const Dims*, int32_t, const DataType*, const DataType*, const bool*,
                         const bool*, PluginFormat, int32_t) noexcept final
    {}

    bool supportsFormat(DataType, PluginFormat) const noexcept final { return false; }

    Dims getOutputDimensions(int32_t, const Dims*, int32_t) noexcept final { return Dims{-1, {}}; }

    bool isOutputBroadcastAcrossBatch(int32_t, const bool*, int32_t) const noexcept final { return false; }

    bool canBroadcastInputAcrossBatch(int32_t) const noexcept final { return true; }

    size_t getWorkspaceSize(int32_t) const noexcept final { return 0; }

    int32_t enqueue(int32_t, const void* const*, void* const*, void*, cudaStream_t) noexcept final { return 1; }
};

class TENSORRTAPI IProfiler
{
public:
    virtual void reportLayerTime(const char* layerName, float ms) noexcept = 0;

    virtual ~IProfiler() noexcept {}
};

enum class WeightsRole : int32_t
{
    kKERNEL = 0,
    kBIAS = 1,
    kSHIFT = 2,
    kSCALE = 3,
    kCONSTANT = 4,
    kANY = 5,
};

/// Number of values of WeightsRole.
template <>
constexpr int32_t EnumMax<WeightsRole>() noexcept
{
    return 6;
}

enum class DeviceType : int32_t
{
    kGPU = 0,
    kDLA = 1,
};

/// Number of values of DeviceType.
template <>
constexpr int32_t EnumMax<DeviceType>() noexcept
{
    return 2;
}

class TENSORRTAPI IRuntime : public INoCopy
{
public:
    virtual ~IRuntime() noexcept = default;

    TRT_DEPRECATED ICudaEngine* deserializeCudaEngine(const void* blob, std::size_t size,
                                                      IPluginFactory* pluginFactory) noexcept;

    void setDLACore(int32_t dlaCore) noexcept;
    int32_t getDLACore() const noexcept;

    int32_t getNbDLACores() const noexcept;

    TRT_DEPRECATED void destroy() noexcept { delete this; }

    void setGpuAllocator(IGpuAllocator* allocator) noexcept;

    void setErrorRecorder(IErrorRecorder* recorder) noexcept;
    IErrorRecorder* getErrorRecorder() const noexcept;

    ICudaEngine* deserializeCudaEngine(const void* blob, std::size_t size) noexcept;

    ILogger* getLogger() const noexcept;

    bool setMaxThreads(int32_t maxThreads) noexcept;
    int32_t getMaxThreads() const noexcept;
};

class TENSORRTAPI IRefitter : public INoCopy
{
public:
    virtual ~IRefitter() noexcept = default;

    bool setWeights(const char* layerName, WeightsRole role, Weights weights) noexcept;

    bool refitCudaEngine() noexcept;

    int32_t getMissing(int32_t size, const char** layerNames, WeightsRole* roles) noexcept;

    int32_t getAll(int32_t size, const char** layerNames, WeightsRole* roles) noexcept;

    TRT_DEPRECATED void destroy() noexcept { delete this; }

    bool setDynamicRange(const char* tensorName, float min, float max) noexcept;

    float getDynamicRangeMin(const char* tensorName) const noexcept;

    float getDynamicRangeMax(const char* tensorName) const noexcept;

    int32_t getTensorsWithDynamicRange(int32_t size, const char** tensorNames) const noexcept;

    void setErrorRecorder(IErrorRecorder* recorder) noexcept;
    IErrorRecorder* getErrorRecorder() const noexcept;

    bool setNamedWeights(const char* name, Weights weights) noexcept;

    int32_t getMissingWeights(int32_t size, const char** weightsNames) noexcept;

    int32_t getAllWeights(int32_t size, const char** weightsNames) noexcept;

    ILogger* getLogger() const noexcept;

    bool setMaxThreads(int32_t maxThreads) noexcept;
    int32_t getMaxThreads() const noexcept;
};

enum class OptProfileSelector : int32_t
{
    kMIN = 0,
    kOPT = 1,
    kMAX = 2,
};

/// Number of values of OptProfileSelector.
template <>
constexpr int32_t EnumMax<OptProfileSelector>() noexcept
{
    return 3;
}

class TENSORRTAPI IOptimizationProfile : public INoCopy
{
public:
    bool setDimensions(const char* inputName, OptProfileSelector select, Dims dims) noexcept;
    Dims getDimensions(const char* inputName, OptProfileSelector select) const noexcept;

    bool setShapeValues(const char* inputName, OptProfileSelector select, const int32_t* values,
                        int32_t nbValues) noexcept;

    int32_t getNbShapeValues(const char* inputName) const noexcept;

    const int32_t* getShapeValues(const char* inputName, OptProfileSelector select) const noexcept;

    bool setExtraMemoryTarget(float target) noexcept;
    float getExtraMemoryTarget() const noexcept;

    bool isValid() const noexcept;

protected:
    virtual ~IOptimizationProfile() noexcept = default;
};

enum class TacticSource : int32_t
{
    kCUBLAS = 0,
    kCUBLAS_LT = 1,
    kCUDNN = 2,
    kEDGE_MASK_CONVOLUTIONS = 3,
    kJIT_CONVOLUTIONS = 4,
};

/// Number of values of TacticSource.
template <>
constexpr int32_t EnumMax<TacticSource>() noexcept
{
    return 5;
}

using TacticSources = uint32_t;

enum class ProfilingVerbosity : int32_t
{
    kLAYER_NAMES_ONLY = 0,
    kNONE = 1,
    kDETAILED = 2,
    kDEFAULT TRT_DEPRECATED_ENUM = kLAYER_NAMES_ONLY, ///< Old name of kLAYER_NAMES_ONLY.
    kVERBOSE TRT_DEPRECATED_ENUM = kDETAILED,         ///< Old name of kDETAILED.
};

/// Number of values of ProfilingVerbosity.
template <>
constexpr int32_t EnumMax<ProfilingVerbosity>() noexcept
{
    return 3;
}

class TENSORRTAPI ICudaEngine : public INoCopy
{
public:
    virtual ~ICudaEngine() noexcept = default;

    TRT_DEPRECATED int32_t getNbBindings() const noexcept;

    TRT_DEPRECATED int32_t getBindingIndex(const char* name) const noexcept;

    TRT_DEPRECATED const char* getBindingName(int32_t bindingIndex) const noexcept;

    TRT_DEPRECATED bool bindingIsInput(int32_t bindingIndex) const noexcept;

    TRT_DEPRECATED Dims getBindingDimensions(int32_t bindingIndex) const noexcept;

    Dims getTensorShape(const char* tensorName) const noexcept;

    TRT_DEPRECATED DataType getBindingDataType(int32_t bindingIndex) const noexcept;

    DataType getTensorDataType(const char* tensorName) const noexcept;

    TRT_DEPRECATED int32_t getMaxBatchSize() const noexcept;

    int32_t getNbLayers() const noexcept;

    IHostMemory* serialize() const noexcept;

    IExecutionContext* createExecutionContext() noexcept;

    TRT_DEPRECATED void destroy() noexcept { delete this; }

    TRT_DEPRECATED TensorLocation getLocation(int32_t bindingIndex) const noexcept;

    TensorLocation getTensorLocation(const char* tensorName) const noexcept;

    bool isShapeInferenceIO(const char* tensorName) const noexcept;

    TensorIOMode getTensorIOMode(const char* tensorName) const noexcept;

    IExecutionContext* createExecutionContextWithoutDeviceMemory() noexcept;

    size_t getDeviceMemorySize() const noexcept;

    bool isRefittable() const noexcept;

    TRT_DEPRECATED int32_t getBindingBytesPerComponent(int32_t bindingIndex) const noexcept;

    int32_t getTensorBytesPerComponent(const char* tensorName) const noexcept;

    TRT_DEPRECATED int32_t getBindingComponentsPerElement(int32_t bindingIndex) const noexcept;

    int32_t getTensorComponentsPerElement(const char* tensorName) const noexcept;

    TRT_DEPRECATED TensorFormat getBindingFormat(int32_t bindingIndex) const noexcept;

    TensorFormat getTensorFormat(const char* tensorName) const noexcept;

    TRT_DEPRECATED const char* getBindingFormatDesc(int32_t bindingIndex) const noexcept;

    const char* getTensorFormatDesc(const char* tensorName) const noexcept;

    TRT_DEPRECATED int32_t getBindingVectorizedDim(int32_t bindingIndex) const noexcept;

    int32_t getTensorVectorizedDim(const char* tensorName) const noexcept;

    const char* getName() const noexcept;

    int32_t getNbOptimizationProfiles() const noexcept;

    TRT_DEPRECATED Dims getProfileDimensions(int32_t bindingIndex, int32_t profileIndex,
                                             OptProfileSelector select) const noexcept;

    Dims getProfileShape(const char* tensorName, int32_t profileIndex, OptProfileSelector select) const noexcept;

    TRT_DEPRECATED const int32_t* getProfileShapeValues(int32_t profileIndex, int32_t inputIndex,
                                                        OptProfileSelector select) const noexcept;

    TRT_DEPRECATED bool isShapeBinding(int32_t bindingIndex) const noexcept;

    TRT_DEPRECATED bool isExecutionBinding(int32_t bindingIndex) const noexcept;

    EngineCapability getEngineCapability() const noexcept;

    void setErrorRecorder(IErrorRecorder* recorder) noexcept;
    IErrorRecorder* getErrorRecorder() const noexcept;

    bool hasImplicitBatchDimension() const noexcept;

    TacticSources getTacticSources() const noexcept;

    ProfilingVerbosity getProfilingVerbosity() const noexcept;

    IEngineInspector* createEngineInspector() const noexcept;

    int32_t getNbIOTensors() const noexcept;

    const char* getIOTensorName(int32_t index) const noexcept;
};

class TENSORRTAPI IOutputAllocator
{
public:
    virtual int32_t getInterfaceVersion() const noexcept { return 1; }

    virtual void* reallocateOutput(const char* tensorName, void* currentMemory, uint64_t size,
                                   uint64_t alignment) noexcept = 0;

    virtual void notifyShape(const char* tensorName, const Dims& dims) noexcept = 0;

    virtual ~IOutputAllocator() noexcept = default;
};

class TENSORRTAPI IExecutionContext : public INoCopy
{
public:
    virtual ~IExecutionContext() noexcept = default;

    TRT_DEPRECATED bool execute(int32_t batchSize, void* const* bindings) noexcept;

    TRT_DEPRECATED bool enqueue(int32_t batchSize, void* const* bindings, cudaStream_t stream,
                                cudaEvent_t* inputConsumed) noexcept;

    void setDebugSync(bool sync) noexcept;
    bool getDebugSync() const noexcept;

    void setProfiler(IProfiler* profiler) noexcept;
    IProfiler* getProfiler() const noexcept;

    const ICudaEngine& getEngine() const noexcept;

    TRT_DEPRECATED void destroy() noexcept { delete this; }

    void setName(const char* name) noexcept;
    const char* getName() const noexcept;

    void setDeviceMemory(void* memory) noexcept;

    TRT_DEPRECATED Dims getStrides(int32_t bindingIndex) const noexcept;

    Dims getTensorStrides(const char* tensorName) const noexcept;

    TRT_DEPRECATED bool setOptimizationProfile(int32_t profileIndex) noexcept;
    int32_t getOptimizationProfile() const noexcept;

    TRT_DEPRECATED bool setBindingDimensions(int32_t bindingIndex, Dims dimensions) noexcept;

    bool setInputShape(const char* tensorName, const Dims& dims) noexcept;

    TRT_DEPRECATED Dims getBindingDimensions(int32_t bindingIndex) const noexcept;

    Dims getTensorShape(const char* tensorName) const noexcept;

    TRT_DEPRECATED bool setInputShapeBinding(int32_t bindingIndex, const int32_t* data) noexcept;

    TRT_DEPRECATED bool getShapeBinding(int32_t bindingIndex, int32_t* data) const noexcept;

    bool allInputDimensionsSpecified() const noexcept;

    bool allInputShapesSpecified() const noexcept;

    void setErrorRecorder(IErrorRecorder* recorder) noexcept;
    IErrorRecorder* getErrorRecorder() const noexcept;

    bool executeV2(void* const* bindings) noexcept;

    TRT_DEPRECATED bool enqueueV2(void* const* bindings, cudaStream_t stream, cudaEvent_t* inputConsumed) noexcept;

    bool setOptimizationProfileAsync(int32_t profileIndex, cudaStream_t stream) noexcept;

    void setEnqueueEmitsProfile(bool enqueueEmitsProfile) noexcept;
    bool getEnqueueEmitsProfile() const noexcept;

    bool reportToProfiler() const noexcept;

    bool setTensorAddress(const char* tensorName, void* data) noexcept;
    const void* getTensorAddress(const char* tensorName) const noexcept;

    bool setInputTensorAddress(const char* tensorName, const void* data) noexcept;

    void* getOutputTensorAddress(const char* tensorName) const noexcept;

    int32_t inferShapes(int32_t nbMaxNames, const char** tensorNames) noexcept;

    bool setInputConsumedEvent(cudaEvent_t event) noexcept;
    cudaEvent_t getInputConsumedEvent() const noexcept;

    bool setOutputAllocator(const char* tensorName, IOutputAllocator* outputAllocator) noexcept;
    IOutputAllocator* getOutputAllocator(const char* tensorName) const noexcept;

    int64_t getMaxOutputSize(const char* tensorName) const noexcept;

    bool setTemporaryStorageAllocator(IGpuAllocator* allocator) noexcept;
    IGpuAllocator* getTemporaryStorageAllocator() const noexcept;

    bool enqueueV3(cudaStream_t stream) noexcept;

    void setPersistentCacheLimit(size_t size) noexcept;
    size_t getPersistentCacheLimit() const noexcept;

    bool setNvtxVerbosity(ProfilingVerbosity verbosity) noexcept;
    ProfilingVerbosity getNvtxVerbosity() const noexcept;
};

enum class LayerInformationFormat : int32_t
{
    kONELINE = 0,
    kJSON = 1,
};

/// Number of values of LayerInformationFormat.
template <>
constexpr int32_t EnumMax<LayerInformationFormat>() noexcept
{
    return 2;
}

class TENSORRTAPI IEngineInspector : public INoCopy
{
public:
    virtual ~IEngineInspector() noexcept = default;

    bool setExecutionContext(const IExecutionContext* context) noexcept;
    const IExecutionContext* getExecutionContext() const noexcept;

    const char* getLayerInformation(int32_t layerIndex, LayerInformationFormat format) const noexcept;

    const char* getEngineInformation(LayerInformationFormat format) const noexcept;

    void setErrorRecorder(IErrorRecorder* recorder) noexcept;
    IErrorRecorder* getErrorRecorder() const noexcept;
};

} // namespace nvinfer1

extern "C" TENSORRTAPI void* createInferRuntime_INTERNAL(void* logger, int32_t version) noexcept;

extern "C" TENSORRTAPI void* createInferRefitter_INTERNAL(void* engine, void* logger, int32_t version) noexcept;

extern "C" TENSORRTAPI nvinfer1::IPluginRegistry* getPluginRegistry() noexcept;

extern "C" TENSORRTAPI nvinfer1::ILogger* getLogger() noexcept;

namespace nvinfer1 {

namespace {

inline IRuntime* createInferRuntime(ILogger& logger) noexcept
{
    return static_cast<IRuntime*>(createInferRuntime_INTERNAL(&logger, NV_TENSORRT_VERSION + tensorwright_abi_8_5));
}

inline IRefitter* createInferRefitter(ICudaEngine& engine, ILogger& logger) noexcept
{
    return static_cast<IRefitter*>(
        createInferRefitter_INTERNAL(&engine, &logger, NV_TENSORRT_VERSION + tensorwright_abi_8_5));
}

} // namespace

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
