// SPDX-License-Identifier: Apache-2.0
// What every other header needs: macros, data types, dimensions, tensor formats, the IPluginV2 family, plugin
// registry, allocator, logger and error recorder.
#ifndef TENSORWRIGHT_NV_INFER_RUNTIME_COMMON_H
#define TENSORWRIGHT_NV_INFER_RUNTIME_COMMON_H

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "NvInferVersion.h"

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

extern "C" {
/// Always 0. The inline factories add it to the version that they pass, so that a client needs this symbol and fails
/// at load, not later, when it meets a libnvinfer whose classes are laid out in another way. A plain variable: a copy
/// relocation against a missing symbol stops the load as well, while g++'s nodirect_extern_access would forbid the copy
/// relocations of everything else in the client's object file, stderr among it, and crash it.
extern TENSORRTAPI int32_t const tensorwright_abi_8_5;
}

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

/// The value of NV_TENSORRT_VERSION: major * 1000 + minor * 100 + patch.
static constexpr int32_t kNV_TENSORRT_VERSION_IMPL =
    NV_TENSORRT_MAJOR * 1000 + NV_TENSORRT_MINOR * 100 + NV_TENSORRT_PATCH;

/// Character type of every string that crosses the API.
using char_t = char;

/// A character of a null-terminated string.
using AsciiChar = char_t;

/// Number of values of an enumeration: they are 0 to EnumMax<T>() - 1. Defined for the enumerations of this API only.
template <typename T>
constexpr int32_t EnumMax() noexcept;

/// Element type of weights and tensors.
enum class DataType : int32_t
{
    kFLOAT = 0, ///< 32-bit IEEE float.
    kHALF = 1,  ///< 16-bit IEEE float.
    kINT8 = 2,  ///< Signed 8-bit integer; stands for a real number through a scale.
    kINT32 = 3, ///< Signed 32-bit integer.
    kBOOL = 4,  ///< 8 bits, 0 is false and 1 is true; other values have no meaning.
    kUINT8 = 5, ///< Unsigned 8-bit integer; for network inputs and outputs, converted by an identity layer.
};

/// Number of values of DataType.
template <>
constexpr int32_t EnumMax<DataType>() noexcept
{
    return 6;
}

/// Dimensions of a tensor, outermost first.
class Dims32
{
public:
    /// Highest rank.
    static constexpr int32_t MAX_DIMS = 8;

    int32_t nbDims;      ///< Rank, 0 to MAX_DIMS; -1 marks dimensions that are unknown or invalid.
    int32_t d[MAX_DIMS]; ///< Extent of each dimension; -1 stands for a wildcard that is bound at run time.
};

/// The name that clients use.
using Dims = Dims32;

/// Order of a tensor's elements in memory. In the names, the letters give the dimensions from outermost to innermost
/// and a number is the length of the innermost vector of channels; the channel count is rounded up to it.
enum class TensorFormat : int32_t
{
    kLINEAR = 0,     ///< Row-major, no vectors; any type and rank.
    kCHW2 = 1,       ///< Channels in pairs, [ceil(C/2)][H][W][2]; kHALF.
    kHWC8 = 2,       ///< Channels innermost, rounded up to 8; kHALF.
    kCHW4 = 3,       ///< [ceil(C/4)][H][W][4]; kINT8, kHALF.
    kCHW16 = 4,      ///< [ceil(C/16)][H][W][16]; kHALF.
    kCHW32 = 5,      ///< [ceil(C/32)][H][W][32]; kINT8, kHALF, kFLOAT.
    kDHWC8 = 6,      ///< As kHWC8 for three spatial dimensions; kHALF.
    kCDHW32 = 7,     ///< As kCHW32 for three spatial dimensions; kINT8, kHALF.
    kHWC = 8,        ///< Channels innermost, no padding; kFLOAT, kUINT8.
    kDLA_LINEAR = 9, ///< DLA planar: rows padded to a multiple of 64 bytes.
    kDLA_HWC4 = 10,  ///< DLA image: channels innermost, C rounded to 1 or 4, rows padded to the device's alignment.
    kHWC16 = 11,     ///< Channels innermost, rounded up to 16; kHALF.
};

/// The name that plugins use for a format.
using PluginFormat = TensorFormat;

/// Number of values of TensorFormat.
template <>
constexpr int32_t EnumMax<TensorFormat>() noexcept
{
    return 12;
}

/// What a plugin learns of one of its inputs or outputs.
struct PluginTensorDesc
{
    Dims dims;           ///< Dimensions; with explicit batch the batch is one of them.
    DataType type;       ///< Element type.
    TensorFormat format; ///< Memory format.
    float scale;         ///< Real value of one INT8 step; meaningful for kINT8 only.
};

/// Interface that a plugin class implements; stands in the top byte of getTensorRTVersion().
enum class PluginVersion : uint8_t
{
    kV2 = 0,            ///< IPluginV2.
    kV2_EXT = 1,        ///< IPluginV2Ext.
    kV2_IOEXT = 2,      ///< IPluginV2IOExt.
    kV2_DYNAMICEXT = 3, ///< IPluginV2DynamicExt.
};

/// A layer written by the user, for networks with implicit batch.
/// Life: created by a creator, configured and cloned by the builder; initialize() before the first enqueue() of an
/// engine, terminate() after the last, destroy() at the end. Methods must not throw. Deprecated: new plugins implement
/// IPluginV2DynamicExt or IPluginV2IOExt.
class TRT_DEPRECATED TENSORRTAPI IPluginV2
{
public:
    /// Version of the API that the plugin was compiled with; not meant to be overridden by users.
    virtual int32_t getTensorRTVersion() const noexcept { return NV_TENSORRT_VERSION; }

    /// Name under which the creator is registered; equal to the creator's getPluginName().
    virtual AsciiChar const* getPluginType() const noexcept = 0;

    /// Version under which the creator is registered; equal to the creator's getPluginVersion().
    virtual AsciiChar const* getPluginVersion() const noexcept = 0;

    /// Number of output tensors, at least 1.
    virtual int32_t getNbOutputs() const noexcept = 0;

    /// Dimensions of output index, without the batch, from the dimensions of all inputs. Called while the network is
    /// defined.
    virtual Dims getOutputDimensions(int32_t index, Dims const* inputs, int32_t nbInputDims) noexcept = 0;

    /// Whether the plugin takes this combination of type and format for its inputs and outputs.
    virtual bool supportsFormat(DataType type, PluginFormat format) const noexcept = 0;

    /// Tells the chosen type, format and dimensions (without the batch) before initialize().
    virtual void configureWithFormat(Dims const* inputDims, int32_t nbInputs, Dims const* outputDims, int32_t nbOutputs,
                                     DataType type, PluginFormat format, int32_t maxBatchSize) noexcept = 0;

    /// Prepares execution, for example device memory. 0 means success.
    virtual int32_t initialize() noexcept = 0;

    /// Releases what initialize() acquired.
    virtual void terminate() noexcept = 0;

    /// Bytes of scratch memory that enqueue() needs for batches up to maxBatchSize.
    virtual size_t getWorkspaceSize(int32_t maxBatchSize) const noexcept = 0;

    /// Puts the work on the stream. inputs, outputs and workspace are device addresses. 0 means success.
    virtual int32_t enqueue(int32_t batchSize, void const* const* inputs, void* const* outputs, void* workspace,
                            cudaStream_t stream) noexcept = 0;

    /// Bytes that serialize() writes.
    virtual size_t getSerializationSize() const noexcept = 0;

    /// Writes the plugin's state to buffer, exactly getSerializationSize() bytes.
    virtual void serialize(void* buffer) const noexcept = 0;

    /// Frees the plugin; the pointer is invalid afterwards.
    virtual void destroy() noexcept = 0;

    /// A copy with the same parameters, weights and namespace, which the caller owns.
    virtual IPluginV2* clone() const noexcept = 0;

    /// Namespace of the creator, "" by default. The string must be copied or outlive the plugin.
    virtual void setPluginNamespace(AsciiChar const* pluginNamespace) noexcept = 0;
    virtual AsciiChar const* getPluginNamespace() const noexcept = 0;

    IPluginV2() = default;
    virtual ~IPluginV2() noexcept = default;

protected:
    IPluginV2(IPluginV2 const&) = default;
    IPluginV2(IPluginV2&&) = default;
    IPluginV2& operator=(IPluginV2 const&) & = default;
    IPluginV2& operator=(IPluginV2&&) & = default;
};

/// IPluginV2 with a type for each output and with broadcast of inputs across the batch. Deprecated as IPluginV2.
class TRT_DEPRECATED TENSORRTAPI IPluginV2Ext : public IPluginV2
{
public:
    /// Type of output index, from the types of all inputs.
    virtual DataType getOutputDataType(int32_t index, DataType const* inputTypes, int32_t nbInputs) const noexcept = 0;

    /// Whether the output is the same for every batch element, given which inputs are.
    virtual bool isOutputBroadcastAcrossBatch(int32_t outputIndex, bool const* inputIsBroadcasted,
                                              int32_t nbInputs) const noexcept = 0;

    /// Whether the plugin can read one copy of this input for the whole batch.
    virtual bool canBroadcastInputAcrossBatch(int32_t inputIndex) const noexcept = 0;

    /// Tells dimensions (without the batch), types, broadcast state and format before initialize().
    virtual void configurePlugin(Dims const* inputDims, int32_t nbInputs, Dims const* outputDims, int32_t nbOutputs,
                                 DataType const* inputTypes, DataType const* outputTypes, bool const* inputIsBroadcast,
                                 bool const* outputIsBroadcast, PluginFormat floatFormat,
                                 int32_t maxBatchSize) noexcept = 0;

    IPluginV2Ext() = default;
    ~IPluginV2Ext() noexcept override = default;

    /// Gives the plugin the handles of its execution context. They are null where the library is absent or its tactic
    /// source is off.
    virtual void attachToContext(cudnnContext* /*cudnn*/, cublasContext* /*cublas*/,
                                 IGpuAllocator* /*allocator*/) noexcept
    {}

    /// The handles of attachToContext() are invalid from here on.
    virtual void detachFromContext() noexcept {}

    IPluginV2Ext* clone() const noexcept override = 0;

protected:
    IPluginV2Ext(IPluginV2Ext const&) = default;
    IPluginV2Ext(IPluginV2Ext&&) = default;
    IPluginV2Ext& operator=(IPluginV2Ext const&) & = default;
    IPluginV2Ext& operator=(IPluginV2Ext&&) & = default;

    int32_t getTensorRTVersion() const noexcept override
    {
        return static_cast<int32_t>((static_cast<uint32_t>(PluginVersion::kV2_EXT) << 24U) |
                                    (static_cast<uint32_t>(NV_TENSORRT_VERSION) & 0xFFFFFFU));
    }

    /// Replaced by configurePlugin().
    void configureWithFormat(Dims const* /*inputDims*/, int32_t /*nbInputs*/, Dims const* /*outputDims*/,
                             int32_t /*nbOutputs*/, DataType /*type*/, PluginFormat /*format*/,
                             int32_t /*maxBatchSize*/) noexcept override
    {}
};

/// IPluginV2Ext with a free choice of type and format for each input and output. Implicit batch, or explicit batch
/// without wildcards in the shapes.
class TENSORRTAPI IPluginV2IOExt : public IPluginV2Ext
{
public:
    /// Tells the chosen description of every input and output before initialize().
    virtual void configurePlugin(PluginTensorDesc const* in, int32_t nbInput, PluginTensorDesc const* out,
                                 int32_t nbOutput) noexcept = 0;

    /// Whether the plugin takes inOut[pos], given that the descriptions before pos are accepted. Inputs come first;
    /// only inOut[0..pos] may be read.
    virtual bool supportsFormatCombination(int32_t pos, PluginTensorDesc const* inOut, int32_t nbInputs,
                                           int32_t nbOutputs) const noexcept = 0;

    IPluginV2IOExt() = default;
    ~IPluginV2IOExt() noexcept override = default;

protected:
    IPluginV2IOExt(IPluginV2IOExt const&) = default;
    IPluginV2IOExt(IPluginV2IOExt&&) = default;
    IPluginV2IOExt& operator=(IPluginV2IOExt const&) & = default;
    IPluginV2IOExt& operator=(IPluginV2IOExt&&) & = default;

    int32_t getTensorRTVersion() const noexcept override
    {
        return static_cast<int32_t>((static_cast<uint32_t>(PluginVersion::kV2_IOEXT) << 24U) |
                                    (static_cast<uint32_t>(NV_TENSORRT_VERSION) & 0xFFFFFFU));
    }

private:
    void configurePlugin(Dims const*, int32_t, Dims const*, int32_t, DataType const*, DataType const*, bool const*,
                         bool const*, PluginFormat, int32_t) noexcept final
    {}

    bool supportsFormat(DataType, PluginFormat) const noexcept final { return false; }
};

/// Type of the data behind a PluginField.
enum class PluginFieldType : int32_t
{
    kFLOAT16 = 0, ///< 16-bit float.
    kFLOAT32 = 1, ///< 32-bit float.
    kFLOAT64 = 2, ///< 64-bit float.
    kINT8 = 3,    ///< Signed 8-bit integer.
    kINT16 = 4,   ///< Signed 16-bit integer.
    kINT32 = 5,   ///< Signed 32-bit integer.
    kCHAR = 6,    ///< Character.
    kDIMS = 7,    ///< nvinfer1::Dims.
    kUNKNOWN = 8, ///< Not said; the creator must know.
};

/// One named parameter of a plugin. Holds pointers only: name and data belong to who filled it.
class PluginField
{
public:
    AsciiChar const* name; ///< Name of the parameter.
    void const* data;      ///< First of length elements; null in the list of a creator's expected fields.
    PluginFieldType type;  ///< Type of an element.
    int32_t length;        ///< Number of elements at data.

    PluginField(AsciiChar const* name_ = nullptr, void const* data_ = nullptr,
                PluginFieldType type_ = PluginFieldType::kUNKNOWN, int32_t length_ = 0) noexcept
        : name(name_), data(data_), type(type_), length(length_)
    {}
};

/// The parameters of a plugin, or the parameters that a creator expects.
struct PluginFieldCollection
{
    int32_t nbFields;          ///< Number of entries of fields.
    PluginField const* fields; ///< First entry.
};

/// Makes plugins of one type and version, from parameters or from the bytes of a plan.
class TENSORRTAPI IPluginCreator
{
public:
    /// Version of the API that the creator was compiled with.
    virtual int32_t getTensorRTVersion() const noexcept { return NV_TENSORRT_VERSION; }

    /// Plugin type; with version and namespace it is the key in the registry.
    virtual AsciiChar const* getPluginName() const noexcept = 0;

    virtual AsciiChar const* getPluginVersion() const noexcept = 0;

    /// The parameters that createPlugin() understands.
    virtual PluginFieldCollection const* getFieldNames() noexcept = 0;

    /// A new plugin from its parameters, or nullptr. name is the layer's name.
    virtual IPluginV2* createPlugin(AsciiChar const* name, PluginFieldCollection const* fc) noexcept = 0;

    /// A new plugin from what IPluginV2::serialize() wrote, or nullptr.
    virtual IPluginV2* deserializePlugin(AsciiChar const* name, void const* serialData,
                                         size_t serialLength) noexcept = 0;

    /// Namespace that the creator hands to its plugins.
    virtual void setPluginNamespace(AsciiChar const* pluginNamespace) noexcept = 0;
    virtual AsciiChar const* getPluginNamespace() const noexcept = 0;

    IPluginCreator() = default;
    virtual ~IPluginCreator() noexcept = default;

protected:
    IPluginCreator(IPluginCreator const&) = default;
    IPluginCreator(IPluginCreator&&) = default;
    IPluginCreator& operator=(IPluginCreator const&) & = default;
    IPluginCreator& operator=(IPluginCreator&&) & = default;
};

/// All plugin creators known in the process, under the key (type, version, namespace).
class TENSORRTAPI IPluginRegistry
{
public:
    /// Adds a creator, which must outlive the registration. False when the key is taken or incomplete.
    virtual bool registerCreator(IPluginCreator& creator, AsciiChar const* pluginNamespace) noexcept = 0;

    /// Array of all creators, owned by the registry; *numCreators becomes their number.
    virtual IPluginCreator* const* getPluginCreatorList(int32_t* numCreators) const noexcept = 0;

    /// The creator with this key, or nullptr.
    virtual IPluginCreator* getPluginCreator(AsciiChar const* pluginName, AsciiChar const* pluginVersion,
                                             AsciiChar const* pluginNamespace = "") noexcept = 0;

    IPluginRegistry() = default;
    IPluginRegistry(IPluginRegistry const&) = delete;
    IPluginRegistry(IPluginRegistry&&) = delete;
    IPluginRegistry& operator=(IPluginRegistry const&) & = delete;
    IPluginRegistry& operator=(IPluginRegistry&&) & = delete;

protected:
    virtual ~IPluginRegistry() noexcept = default;

public:
    /// Recorder of the registry's errors; its reference count is raised until it is replaced. nullptr takes it away.
    virtual void setErrorRecorder(IErrorRecorder* recorder) noexcept = 0;
    virtual IErrorRecorder* getErrorRecorder() const noexcept = 0;

    /// Takes a creator out, for example before its library is unloaded. False when it is not there.
    virtual bool deregisterCreator(IPluginCreator const& creator) noexcept = 0;
};

/// Property asked of an allocation.
enum class AllocatorFlag : int32_t
{
    kRESIZABLE = 0, ///< The memory may later be passed to reallocate().
};

/// Number of values of AllocatorFlag.
template <>
constexpr int32_t EnumMax<AllocatorFlag>() noexcept
{
    return 1;
}

/// Bit mask: bit i is the AllocatorFlag of value i.
using AllocatorFlags = uint32_t;

/// Device memory given by the application. Must be safe to call from several threads.
class TENSORRTAPI IGpuAllocator
{
public:
    /// Device memory of size bytes at an address that is a multiple of alignment (a power of two or 0), or nullptr.
    /// Size 0 gives nullptr.
    virtual void* allocate(uint64_t size, uint64_t alignment, AllocatorFlags flags) noexcept = 0;

    /// Releases memory of allocate(); nullptr is allowed. Replaced by deallocate().
    TRT_DEPRECATED virtual void free(void* memory) noexcept = 0;

    virtual ~IGpuAllocator() noexcept = default;
    IGpuAllocator() = default;

    /// Grows memory of a kRESIZABLE allocation and keeps its contents. nullptr means that it cannot, and the old memory
    /// stays valid; that is all the default does.
    virtual void* reallocate(void* /*baseAddr*/, uint64_t /*alignment*/, uint64_t /*newSize*/) noexcept
    {
        return nullptr;
    }

    /// Releases memory; false when the address is not one of this allocator's. The default forwards to free().
    virtual bool deallocate(void* memory) noexcept
    {
        this->free(memory);
        return true;
    }

protected:
    IGpuAllocator(IGpuAllocator const&) = default;
    IGpuAllocator(IGpuAllocator&&) = default;
    IGpuAllocator& operator=(IGpuAllocator const&) & = default;
    IGpuAllocator& operator=(IGpuAllocator&&) & = default;
};

/// Receives every message of builder, runtime, refitter and parsers. Called from several threads; must outlive the
/// objects made with it.
class TENSORRTAPI ILogger
{
public:
    /// Weight of a message, most severe first.
    enum class Severity : int32_t
    {
        kINTERNAL_ERROR = 0, ///< A fault inside the library; going on is not possible.
        kERROR = 1,          ///< A fault of the program or of its inputs.
        kWARNING = 2,        ///< Something was repaired, replaced or ignored.
        kINFO = 3,           ///< Progress.
        kVERBOSE = 4,        ///< Detail for debugging.
    };

    /// Takes one message; msg is valid during the call only.
    virtual void log(Severity severity, AsciiChar const* msg) noexcept = 0;

    ILogger() = default;
    virtual ~ILogger() noexcept = default;

protected:
    ILogger(ILogger const&) = default;
    ILogger(ILogger&&) = default;
    ILogger& operator=(ILogger const&) & = default;
    ILogger& operator=(ILogger&&) & = default;
};

/// Number of values of ILogger::Severity.
template <>
constexpr int32_t EnumMax<ILogger::Severity>() noexcept
{
    return 5;
}

/// Kind of an error in an error recorder.
enum class ErrorCode : int32_t
{
    kSUCCESS = 0,               ///< No error.
    kUNSPECIFIED_ERROR = 1,     ///< None of the kinds below.
    kINTERNAL_ERROR = 2,        ///< A fault inside the library.
    kINVALID_ARGUMENT = 3,      ///< An argument outside its allowed values.
    kINVALID_CONFIG = 4,        ///< Settings that do not go together.
    kFAILED_ALLOCATION = 5,     ///< Host or device memory could not be had.
    kFAILED_INITIALIZATION = 6, ///< A component could not be started.
    kFAILED_EXECUTION = 7,      ///< A failure while the engine ran.
    kFAILED_COMPUTATION = 8,    ///< The run ended but its numbers are wrong, for example by an overflow.
    kINVALID_STATE = 9,         ///< A call that the object's present state does not allow.
    kUNSUPPORTED_STATE = 10,    ///< A request that this device or this release cannot fulfil.
};

/// Number of values of ErrorCode.
template <>
constexpr int32_t EnumMax<ErrorCode>() noexcept
{
    return 11;
}

/// Collects errors for the application, as a list that may be bounded. Called from several threads; must outlive the
/// objects it is set on.
class TENSORRTAPI IErrorRecorder
{
public:
    /// Text of an error, null-terminated.
    using ErrorDesc = char const*;

    /// Longest text in characters, without the terminator, that every recorder must keep.
    static constexpr size_t kMAX_DESC_LENGTH = 127;

    /// Type of the reference count.
    using RefCount = int32_t;

    IErrorRecorder() = default;
    virtual ~IErrorRecorder() noexcept = default;

    /// Number of errors held, 0 when none or after clear().
    virtual int32_t getNbErrors() const noexcept = 0;

    /// Kind of error errorIdx; kINVALID_ARGUMENT for an index out of range.
    virtual ErrorCode getErrorCode(int32_t errorIdx) const noexcept = 0;

    /// Text of error errorIdx; valid until the next reportError() or clear().
    virtual ErrorDesc getErrorDesc(int32_t errorIdx) const noexcept = 0;

    /// Whether errors were dropped because the list was full.
    virtual bool hasOverflowed() const noexcept = 0;

    /// Forgets all errors and the overflow.
    virtual void clear() noexcept = 0;

    /// Adds an error. True means that the error is fatal and the caller must stop.
    virtual bool reportError(ErrorCode val, ErrorDesc desc) noexcept = 0;

    /// One more object uses the recorder; gives the new count.
    virtual RefCount incRefCount() noexcept = 0;

    /// One object fewer uses the recorder; gives the new count.
    virtual RefCount decRefCount() noexcept = 0;

protected:
    IErrorRecorder(IErrorRecorder const&) = default;
    IErrorRecorder(IErrorRecorder&&) = default;
    IErrorRecorder& operator=(IErrorRecorder const&) & = default;
    IErrorRecorder& operator=(IErrorRecorder&&) & = default;
};

/// Role of a named tensor in an engine.
enum class TensorIOMode : int32_t
{
    kNONE = 0,   ///< Neither input nor output.
    kINPUT = 1,  ///< Input.
    kOUTPUT = 2, ///< Output.
};

/// Number of values of TensorIOMode.
template <>
constexpr int32_t EnumMax<TensorIOMode>() noexcept
{
    return 3;
}

} // namespace nvinfer1

/// NV_TENSORRT_VERSION of the libnvinfer that is loaded.
extern "C" TENSORRTAPI int32_t getInferLibVersion() noexcept;

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif
