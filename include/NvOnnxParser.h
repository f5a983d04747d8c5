// SPDX-License-Identifier: Apache-2.0
// Importer of ONNX models: fills a network definition from a serialized ModelProto.
#ifndef TENSORWRIGHT_NV_ONNX_PARSER_H
#define TENSORWRIGHT_NV_ONNX_PARSER_H

#include <vector>

#include <stddef.h>

#include "NvInfer.h"

#define NV_ONNX_PARSER_MAJOR 0
#define NV_ONNX_PARSER_MINOR 1
#define NV_ONNX_PARSER_PATCH 0

#if defined(__GNUC__)
// Deprecated names are declared with the help of other deprecated names; only uses in client code shall warn.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

/// Version of this interface: major * 10000 + minor * 100 + patch.
static int const NV_ONNX_PARSER_VERSION =
    NV_ONNX_PARSER_MAJOR * 10000 + NV_ONNX_PARSER_MINOR * 100 + NV_ONNX_PARSER_PATCH;

/// Node indices of a part of a model, and whether the parser supports it.
using SubGraph_t = std::pair<std::vector<size_t>, bool>;

/// Parts of a model in execution order.
using SubGraphCollection_t = std::vector<SubGraph_t>;

namespace nvonnxparser {

/// Number of values of an enumeration of the parser.
template <typename T>
int32_t EnumMax();

/// Kind of a parser error.
enum class ErrorCode : int
{
    kSUCCESS = 0,                  ///< No error.
    kINTERNAL_ERROR = 1,           ///< A fault inside the parser.
    kMEM_ALLOC_FAILED = 2,         ///< Host memory could not be had.
    kMODEL_DESERIALIZE_FAILED = 3, ///< The bytes are not an ONNX model.
    kINVALID_VALUE = 4,            ///< A value in the model is not allowed.
    kINVALID_GRAPH = 5,            ///< The graph is not well formed.
    kINVALID_NODE = 6,             ///< A node is not well formed.
    kUNSUPPORTED_GRAPH = 7,        ///< The graph has a form that cannot be imported.
    kUNSUPPORTED_NODE = 8,         ///< A node cannot be imported.
};

/// Number of values of ErrorCode.
template <>
inline int32_t EnumMax<ErrorCode>()
{
    return 9;
}

/// One error of the parser. Owned by the parser.
class TENSORRTAPI IParserError
{
public:
    virtual ErrorCode code() const = 0;

    virtual char const* desc() const = 0;

    /// Source file of the parser in which the error arose.
    virtual char const* file() const = 0;

    /// Line in that file.
    virtual int line() const = 0;

    /// Function in that file.
    virtual char const* func() const = 0;

    /// Index of the node in the model, or -1.
    virtual int node() const = 0;

protected:
    virtual ~IParserError() noexcept {}
};

/// Imports ONNX models into one network. The network must outlive it.
class TENSORRTAPI IParser
{
public:
    /// Imports a serialized ModelProto. model_path is the model's own path; files with external weights are looked up
    /// beside it. False on error, see getError().
    virtual bool parse(void const* serialized_onnx_model, size_t serialized_onnx_model_size,
                       char const* model_path = nullptr) = 0;

    /// Imports a model file; verbosity is the number of an ILogger::Severity.
    virtual bool parseFromFile(char const* onnxModelFile, int verbosity) = 0;

    /// Whether the whole model can be imported; sub_graph_collection receives its supported and unsupported parts.
    virtual bool supportsModel(void const* serialized_onnx_model, size_t serialized_onnx_model_size,
                               SubGraphCollection_t& sub_graph_collection, char const* model_path = nullptr) = 0;

    /// As parse(), for a model whose weights stay in the caller's memory.
    virtual bool parseWithWeightDescriptors(void const* serialized_onnx_model, size_t serialized_onnx_model_size) = 0;

    /// Whether the parser knows the operator.
    virtual bool supportsOperator(char const* op_name) const = 0;

    /// Deletes the object; delete does the same.
    TRT_DEPRECATED virtual void destroy() = 0;

    virtual int getNbErrors() const = 0;

    /// Error index, or nullptr out of range. Valid until clearErrors().
    virtual IParserError const* getError(int index) const = 0;

    virtual void clearErrors() = 0;

    virtual ~IParser() noexcept = default;
};

} // namespace nvonnxparser

/// Exported side of createParser().
extern "C" TENSORRTAPI void* createNvOnnxParser_INTERNAL(void* network, void* logger, int version);

/// NV_ONNX_PARSER_VERSION of the library that is loaded.
extern "C" TENSORRTAPI int getNvOnnxParserVersion();

namespace nvonnxparser {

namespace {

/// A parser that fills network, or nullptr. The caller deletes it; network and logger must outlive it.
inline IParser* createParser(nvinfer1::INetworkDefinition& network, nvinfer1::ILogger& logger)
{
    return static_cast<IParser*>(
        createNvOnnxParser_INTERNAL(&network, &logger, NV_ONNX_PARSER_VERSION + tensorwright_abi_8_5));
}

} // namespace

} // namespace nvonnxparser

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif
