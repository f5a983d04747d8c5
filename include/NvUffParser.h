// SPDX-License-Identifier: Apache-2.0
// Importer of UFF models, the frozen-graph format of old TensorFlow conversions.
#ifndef TENSORWRIGHT_NV_UFF_PARSER_H
#define TENSORWRIGHT_NV_UFF_PARSER_H

#include "NvInfer.h"

// Oldest version of the UFF format that the parser reads.
#define UFF_REQUIRED_VERSION_MAJOR 0
#define UFF_REQUIRED_VERSION_MINOR 6
#define UFF_REQUIRED_VERSION_PATCH 9

#if defined(__GNUC__)
// Deprecated names are declared with the help of other deprecated names; only uses in client code shall warn.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvuffparser {

/// Order of an input's dimensions in the model.
enum class UffInputOrder : int32_t
{
    kNCHW = 0, ///< Batch, channels, height, width.
    kNHWC = 1, ///< Batch, height, width, channels.
    kNC = 2,   ///< Batch, channels.
};

/// Type of a field of a custom node.
enum class FieldType : int32_t
{
    kFLOAT = 0,    ///< float.
    kINT32 = 1,    ///< int32_t.
    kCHAR = 2,     ///< char.
    kDIMS = 4,     ///< nvinfer1::Dims.
    kDATATYPE = 5, ///< nvinfer1::DataType.
    kUNKNOWN = 6,  ///< Not said.
};

/// One named parameter of a custom node. Holds pointers only.
class TENSORRTAPI FieldMap
{
public:
    char const* name;                     ///< Name of the parameter.
    void const* data;                     ///< First of length elements.
    FieldType type = FieldType::kUNKNOWN; ///< Type of an element.
    int32_t length = 1;                   ///< Number of elements.

    FieldMap(char const* name, void const* data, FieldType type, int32_t length = 1);
};

/// The parameters of a custom node.
struct FieldCollection
{
    int32_t nbFields;       ///< Number of entries of fields.
    FieldMap const* fields; ///< First entry.
};

/// Imports UFF models.
class TENSORRTAPI IUffParser
{
public:
    /// Declares an input of the model before parsing; dimensions without the batch. False on error.
    virtual bool registerInput(char const* inputName, nvinfer1::Dims inputDims, UffInputOrder inputOrder) noexcept = 0;

    /// Declares an output of the model before parsing. False on error.
    virtual bool registerOutput(char const* outputName) noexcept = 0;

    /// Imports a file. weightsType is the type that stored weights are converted to. False on error.
    virtual bool parse(char const* file, nvinfer1::INetworkDefinition& network,
                       nvinfer1::DataType weightsType = nvinfer1::DataType::kFLOAT) noexcept = 0;

    /// As parse(), from memory.
    virtual bool parseBuffer(char const* buffer, std::size_t size, nvinfer1::INetworkDefinition& network,
                             nvinfer1::DataType weightsType = nvinfer1::DataType::kFLOAT) noexcept = 0;

    /// Deletes the object; delete does the same.
    TRT_DEPRECATED virtual void destroy() noexcept = 0;

    virtual int32_t getUffRequiredVersionMajor() noexcept = 0;

    virtual int32_t getUffRequiredVersionMinor() noexcept = 0;

    virtual int32_t getUffRequiredVersionPatch() noexcept = 0;

    /// Namespace in which plugins are looked up.
    virtual void setPluginNamespace(char const* libNamespace) noexcept = 0;

    virtual ~IUffParser() noexcept = default;

    /// Recorder of the errors of this object; its reference count is raised until it is replaced. nullptr takes it
    /// away.
    virtual void setErrorRecorder(nvinfer1::IErrorRecorder* recorder) noexcept = 0;
    virtual nvinfer1::IErrorRecorder* getErrorRecorder() const noexcept = 0;
};

/// A parser, or nullptr. The caller deletes it, after the networks that it filled are built: it owns their weights.
TENSORRTAPI IUffParser* createUffParser() noexcept;

/// Frees the memory of the protobuf library; no parser may be used afterwards.
TENSORRTAPI void shutdownProtobufLibrary() noexcept;

} // namespace nvuffparser

/// createUffParser() with C linkage.
extern "C" TENSORRTAPI void* createNvUffParser_INTERNAL() noexcept;

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif
