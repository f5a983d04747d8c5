// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORWRIGHT_NV_INFER_RUNTIME_COMMON_H
#define TENSORWRIGHT_NV_INFER_RUNTIME_COMMON_H

#include "NvInferVersion.h"

#include <cstddef>
#include <cstdint>
#include <cuda_runtime_api.h>

// TRT_DEPRECATED stands before a declaration or after the class keyword. The enumerator form is apart because g++ takes
// an attribute on an enumerator from version 6 on.
#if defined(_MSC_VER)
#define TRT_DEPRECATED __declspec(deprecated)
#define TRT_DEPRECATED_ENUM
#define TRT_DEPRECATED_API __declspec(deprecated, dllexport)
#elif defined(__GNUC__)
#define TRT_DEPRECATED __attribute__((deprecated))
#if defined(__clang__) || __GNUC__ >= 6
#define TRT_DEPRECATED_ENUM TRT_DEPRECATED
#else
#define TRT_DEPRECATED_ENUM
#endif
#define TRT_DEPRECATED_API __attribute__((deprecated, visibility("default")))
#else
#define TRT_DEPRECATED
#define TRT_DEPRECATED_ENUM
#define TRT_DEPRECATED_API
#endif

// The libraries define TENSORRT_BUILD_LIB when they are built; clients do not.
#if !defined(TENSORRT_BUILD_LIB)
#define TENSORRTAPI
#elif defined(_MSC_VER)
#define TENSORRTAPI __declspec(dllexport)
#else
#define TENSORRTAPI __attribute__((visibility("default")))
#endif

// Plugins written for older releases put this behind their methods.
#define TRTNOEXCEPT

// 8503. A C++ constant, not a preprocessor number: it cannot stand in #if.
#define NV_TENSORRT_VERSION nvinfer1::kNV_TENSORRT_VERSION_IMPL

// Reading the marker through the global offset table keeps it an undefined symbol of the client; a copy relocation
// would turn it into a variable of the client.
#if defined(__has_attribute)
#if __has_attribute(nodirect_extern_access)
#define TW_ABI_MARKER __attribute__((nodirect_extern_access))
#endif
#endif
#if !defined(TW_ABI_MARKER)
#define TW_ABI_MARKER
#endif

extern "C" {
/// Always 0. The inline factories add it to the version that they pass, so that a client needs this symbol and fails
/// at load, not later, when it meets a libnvinfer whose classes are laid out in another way.
extern TENSORRTAPI int32_t const tensorwright_abi_8_5 TW_ABI_MARKER;
}
#undef TW_ABI_MARKER

#if defined(__GNUC__)
// Deprecated names are declared with the help of other deprecated names; only uses in client code shall warn.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

// Handles of cuBLAS and cuDNN, as plugins see them: pointers only, never defined here.
extern "C" {
struct cublasContext;
struct cudnnContext;
}

namespace nvinfer1 {

class IGpuAllocator;
class IErrorRecorder;

static constexpr int32_t kNV_TENSORRT_VERSION_IMPL =
    NV_TENSORRT_MAJOR * 1000 + NV_TENSORRT_MINOR * 100 + NV_TENSORRT_PATCH;

using char_t = char;

using AsciiChar = char_t;

template <typename T>
constexpr int32_t EnumMax() noexcept;

enum class DataType : int32_t
{
    kFLOAT = 0,
    kHALF = 1,
    kINT8 = 2,
    kINT32 = 3,
    kBOOL = 4,
    kUINT8 = 5,
};

/// Number of values of DataType.
template <>
constexpr int32_t EnumMax<DataType>() noexcept
{
    return 6;
}

class Dims32
{
public:
    static constexpr int32_t MAX_DIMS = 8;

    int32_t nbDims;
    int32_t d[MAX_DIMS];
};

using Dims = Dims32;

enum class TensorFormat : int32_t
{
    kLINEAR = 0,
    kCHW2 = 1,
    kHWC8 = 2,
    kCHW4 = 3,
    kCHW16 = 4,
    kCHW32 = 5,
    kDHWC8 = 6,
    kCDHW32 = 7,
    kHWC = 8,
    kDLA_LINEAR = 9,
    kDLA_HWC4 = 10,
    kHWC16 = 11,
};

using PluginFormat = TensorFormat;

/// Number of values of TensorFormat.
template <>
constexpr int32_t EnumMax<TensorFormat>() noexcept
{
    return 12;
}

struct PluginTensorDesc
{
    Dims dims;
    DataType type;
    TensorFormat format;
    float scale;
};

enum class PluginVersion : uint8_t
{
    kV2 = 0,
    kV2_EXT = 1,
    kV2_IOEXT = 2,
    kV2_DYNAMICEXT = 3,
};

class TRT_DEPRECATED TENSORRTAPI IPluginV2
{
public:
    virtual int32_t getTensorRTVersion() const noexcept { return NV_TENSORRT_VERSION; }

    virtual const AsciiChar* getPluginType() const noexcept = 0;

    virtual const AsciiChar* getPluginVersion() const noexcept = 0;

    virtual int32_t getNbOutputs() const noexcept = 0;

    virtual Dims getOutputDimensions(int32_t index, const Dims* inputs, int32_t nbInputDims) noexcept = 0;

    virtual bool supportsFormat(DataType type, PluginFormat format) const noexcept = 0;

    virtual void configureWithFormat(const Dims* inputDims, int32_t nbInputs, const Dims* outputDims, int32_t nbOutputs,
                                     DataType type, PluginFormat format, int32_t maxBatchSize) noexcept = 0;

    virtual int32_t initialize() noexcept = 0;

    virtual void terminate() noexcept = 0;

    virtual size_t getWorkspaceSize(int32_t maxBatchSize) const noexcept = 0;

    virtual int32_t enqueue(int32_t batchSize, const void* const* inputs, void* const* outputs, void* workspace,
                            cudaStream_t stream) noexcept = 0;

    virtual size_t getSerializationSize() const noexcept = 0;

    virtual void serialize(void* buffer) const noexcept = 0;

    virtual void destroy() noexcept = 0;

    virtual IPluginV2* clone() const noexcept = 0;

    virtual void setPluginNamespace(const AsciiChar* pluginNamespace) noexcept = 0;
    virtual const AsciiChar* getPluginNamespace() const noexcept = 0;

    IPluginV2() = default;
    virtual ~IPluginV2() noexcept = default;

protected:
    IPluginV2(const IPluginV2&) = default;
    IPluginV2(IPluginV2&&) = default;
    IPluginV2& operator=(const IPluginV2&) & = default;
    IPluginV2& operator=(IPluginV2&&) & = default;
};

class TRT_DEPRECATED TENSORRTAPI IPluginV2Ext : public IPluginV2
{
public:
    virtual DataType getOutputDataType(int32_t index, const DataType* inputTypes, int32_t nbInputs) const noexcept = 0;

    virtual bool isOutputBroadcastAcrossBatch(int32_t outputIndex, const bool* inputIsBroadcasted,
                                              int32_t nbInputs) const noexcept = 0;

    virtual bool canBroadcastInputAcrossBatch(int32_t inputIndex) const noexcept = 0;

    virtual void configurePlugin(const Dims* inputDims, int32_t nbInputs, const Dims* outputDims, int32_t nbOutputs,
                                 const DataType* inputTypes, const DataType* outputTypes, const bool* inputIsBroadcast,
                                 const bool* outputIsBroadcast, PluginFormat floatFormat,
                                 int32_t maxBatchSize) noexcept = 0;

    IPluginV2Ext() = default;
    ~IPluginV2Ext() noexcept override = default;

    virtual void attachToContext(cudnnContext* /*cudnn*/, cublasContext* /*cublas*/,
                                 IGpuAllocator* /*allocator*/) noexcept
    {}

    virtual void detachFromContext() noexcept {}

    IPluginV2Ext* clone() const noexcept override = 0;

protected:
    IPluginV2Ext(const IPluginV2Ext&) = default;
    IPluginV2Ext(IPluginV2Ext&&) = default;
    IPluginV2Ext& operator=(const IPluginV2Ext&) & = default;
    IPluginV2Ext& operator=(IPluginV2Ext&&) & = default;

    int32_t getTensorRTVersion() const noexcept override
    {
        return static_cast<int32_t>((static_cast<uint32_t>(PluginVersion::kV2_EXT) << 24U) |
                                    (static_cast<uint32_t>(NV_TENSORRT_VERSION) & 0xFFFFFFU));
    }

    void configureWithFormat(const Dims* /*inputDims*/, int32_t /*nbInputs*/, const Dims* /*outputDims*/,
                             int32_t /*nbOutputs*/, DataType /*type*/, PluginFormat /*format*/,
                             int32_t /*maxBatchSize*/) noexcept override
    {}
};

class TENSORRTAPI IPluginV2IOExt : public IPluginV2Ext
{
public:
    virtual void configurePlugin(const PluginTensorDesc* in, int32_t nbInput, const PluginTensorDesc* out,
                                 int32_t nbOutput) noexcept = 0;

    virtual bool supportsFormatCombination(int32_t pos, const PluginTensorDesc* inOut, int32_t nbInputs,
                                           int32_t nbOutputs) const noexcept = 0;

    IPluginV2IOExt() = default;
    ~IPluginV2IOExt() noexcept override = default;

protected:
    IPluginV2IOExt(const IPluginV2IOExt&) = default;
    IPluginV2IOExt(IPluginV2IOExt&&) = default;
    IPluginV2IOExt& operator=(const IPluginV2IOExt&) & = default;
    IPluginV2IOExt& operator=(IPluginV2IOExt&&) & = default;

    int32_t getTensorRTVersion() const noexcept override
    {
        return static_cast<int32_t>((static_cast<uint32_t>(PluginVersion::kV2_IOEXT) << 24U) |
                                    (static_cast<uint32_t>(NV_TENSORRT_VERSION) & 0xFFFFFFU));
    }

private:
    void configurePlugin(const Dims*, int32_t, const Dims*, int32_t, const DataType*, const DataType*, const bool*,
                         const bool*, PluginFormat, int32_t) noexcept final
    {}

    bool supportsFormat(DataType, PluginFormat) const noexcept final { return false; }
};

enum class PluginFieldType : int32_t
{
    kFLOAT16 = 0,
    kFLOAT32 = 1,
    kFLOAT64 = 2,
    kINT8 = 3,
    kINT16 = 4,
    kINT32 = 5,
    kCHAR = 6,
    kDIMS = 7,
    kUNKNOWN = 8,
};

class PluginField
{
public:
    const AsciiChar* name;
    const void* data;
    PluginFieldType type;
    int32_t length;

    PluginField(const AsciiChar* name_ = nullptr, const void* data_ = nullptr,
                PluginFieldType type_ = PluginFieldType::kUNKNOWN, int32_t length_ = 0) noexcept
        : name(name_), data(data_), type(type_), length(length_)
    {}
};

struct PluginFieldCollection
{
    int32_t nbFields;
    const PluginField* fields;
};

class TENSORRTAPI IPluginCreator
{
public:
    virtual int32_t getTensorRTVersion() const noexcept { return NV_TENSORRT_VERSION; }

    virtual const AsciiChar* getPluginName() const noexcept = 0;

    virtual const AsciiChar* getPluginVersion() const noexcept = 0;

    virtual const PluginFieldCollection* getFieldNames() noexcept = 0;

    virtual IPluginV2* createPlugin(const AsciiChar* name, const PluginFieldCollection* fc) noexcept = 0;

    virtual IPluginV2* deserializePlugin(const AsciiChar* name, const void* serialData,
                                         size_t serialLength) noexcept = 0;

    virtual void setPluginNamespace(const AsciiChar* pluginNamespace) noexcept = 0;
    virtual const AsciiChar* getPluginNamespace() const noexcept = 0;

    IPluginCreator() = default;
    virtual ~IPluginCreator() noexcept = default;

protected:
    IPluginCreator(const IPluginCreator&) = default;
    IPluginCreator(IPluginCreator&&) = default;
    IPluginCreator& operator=(const IPluginCreator&) & = default;
    IPluginCreator& operator=(IPluginCreator&&) & = default;
};

class TENSORRTAPI IPluginRegistry
{
public:
    virtual bool registerCreator(IPluginCreator& creator, const AsciiChar* pluginNamespace) noexcept = 0;

    virtual IPluginCreator* const* getPluginCreatorList(int32_t* numCreators) const noexcept = 0;

    virtual IPluginCreator* getPluginCreator(const AsciiChar* pluginName, const AsciiChar* pluginVersion,
                                             const AsciiChar* pluginNamespace = "") noexcept = 0;

    IPluginRegistry() = default;
    IPluginRegistry(const IPluginRegistry&) = delete;
    IPluginRegistry(IPluginRegistry&&) = delete;
    IPluginRegistry& operator=(const IPluginRegistry&) & = delete;
    IPluginRegistry& operator=(IPluginRegistry&&) & = delete;

protected:
    virtual ~IPluginRegistry() noexcept = default;

public:
    virtual void setErrorRecorder(IErrorRecorder* recorder) noexcept = 0;
    virtual IErrorRecorder* getErrorRecorder() const noexcept = 0;

    virtual bool deregisterCreator(const IPluginCreator& creator) noexcept = 0;
};

enum class AllocatorFlag : int32_t
{
    kRESIZABLE = 0,
};

/// Number of values of AllocatorFlag.
template <>
constexpr int32_t EnumMax<AllocatorFlag>() noexcept
{
    return 1;
}

using AllocatorFlags = uint32_t;

class TENSORRTAPI IGpuAllocator
{
public:
    virtual void* allocate(uint64_t size, uint64_t alignment, AllocatorFlags flags) noexcept = 0;

    TRT_DEPRECATED virtual void free(void* memory) noexcept = 0;

    virtual ~IGpuAllocator() noexcept = default;
    IGpuAllocator() = default;

    virtual void* reallocate(void* /*baseAddr*/, uint64_t /*alignment*/, uint64_t /*newSize*/) noexcept
    {
        return nullptr;
    }

    virtual bool deallocate(void* memory) noexcept
    {
        this->free(memory);
        return true;
    }

protected:
    IGpuAllocator(const IGpuAllocator&) = default;
    IGpuAllocator(IGpuAllocator&&) = default;
    IGpuAllocator& operator=(const IGpuAllocator&) & = default;
    IGpuAllocator& operator=(IGpuAllocator&&) & = default;
};

class TENSORRTAPI ILogger
{
public:
    enum class Severity : int32_t
    {
        kINTERNAL_ERROR = 0,
        kERROR = 1,
        kWARNING = 2,
        kINFO = 3,
        kVERBOSE = 4,
    };

    virtual void log(Severity severity, const AsciiChar* msg) noexcept = 0;

    ILogger() = default;
    virtual ~ILogger() noexcept = default;

protected:
    ILogger(const ILogger&) = default;
    ILogger(ILogger&&) = default;
    ILogger& operator=(const ILogger&) & = default;
    ILogger& operator=(ILogger&&) & = default;
};

/// Number of values of ILogger::Severity.
template <>
constexpr int32_t EnumMax<ILogger::Severity>() noexcept
{
    return 5;
}

enum class ErrorCode : int32_t
{
    kSUCCESS = 0,
    kUNSPECIFIED_ERROR = 1,
    kINTERNAL_ERROR = 2,
    kINVALID_ARGUMENT = 3,
    kINVALID_CONFIG = 4,
    kFAILED_ALLOCATION = 5,
    kFAILED_INITIALIZATION = 6,
    kFAILED_EXECUTION = 7,
    kFAILED_COMPUTATION = 8,
    kINVALID_STATE = 9,
    kUNSUPPORTED_STATE = 10,
};

/// Number of values of ErrorCode.
template <>
constexpr int32_t EnumMax<ErrorCode>() noexcept
{
    return 11;
}

class TENSORRTAPI IErrorRecorder
{
public:
    using ErrorDesc = const char*;

    static constexpr size_t kMAX_DESC_LENGTH = 127;

    using RefCount = int32_t;

    IErrorRecorder() = default;
    virtual ~IErrorRecorder() noexcept = default;

    virtual int32_t getNbErrors() const noexcept = 0;

    virtual ErrorCode getErrorCode(int32_t errorIdx) const noexcept = 0;

    virtual ErrorDesc getErrorDesc(int32_t errorIdx) const noexcept = 0;

    virtual bool hasOverflowed() const noexcept = 0;

    virtual void clear() noexcept = 0;

    virtual bool reportError(ErrorCode val, ErrorDesc desc) noexcept = 0;

    virtual RefCount incRefCount() noexcept = 0;

    virtual RefCount decRefCount() noexcept = 0;

protected:
    IErrorRecorder(const IErrorRecorder&) = default;
    IErrorRecorder(IErrorRecorder&&) = default;
    IErrorRecorder& operator=(const IErrorRecorder&) & = default;
    IErrorRecorder& operator=(IErrorRecorder&&) & = default;
};

enum class TensorIOMode : int32_t
{
    kNONE = 0,
    kINPUT = 1,
    kOUTPUT = 2,
};

/// Number of values of TensorIOMode.
template <>
constexpr int32_t EnumMax<TensorIOMode>() noexcept
{
    return 3;
}

} // namespace nvinfer1

extern "C" TENSORRTAPI int32_t getInferLibVersion() noexcept;

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif
