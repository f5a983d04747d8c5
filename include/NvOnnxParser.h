// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORWRIGHT_NV_ONNX_PARSER_H
#define TENSORWRIGHT_NV_ONNX_PARSER_H

#include "NvInfer.h"

#include <stddef.h>
#include <vector>

#define NV_ONNX_PARSER_MAJOR 0
#define NV_ONNX_PARSER_MINOR 1
#define NV_ONNX_PARSER_PATCH 0

#if defined(__GNUC__)
// Deprecated names are declared with the help of other deprecated names; only uses in client code shall warn.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

static const int NV_ONNX_PARSER_VERSION =
    NV_ONNX_PARSER_MAJOR * 10000 + NV_ONNX_PARSER_MINOR * 100 + NV_ONNX_PARSER_PATCH;

using SubGraph_t = std::pair<std::vector<size_t>, bool>;

using SubGraphCollection_t = std::vector<SubGraph_t>;

namespace nvonnxparser {

template <typename T>
int32_t EnumMax();

enum class ErrorCode : int
{
    kSUCCESS = 0,
    kINTERNAL_ERROR = 1,
    kMEM_ALLOC_FAILED = 2,
    kMODEL_DESERIALIZE_FAILED = 3,
    kINVALID_VALUE = 4,
    kINVALID_GRAPH = 5,
    kINVALID_NODE = 6,
    kUNSUPPORTED_GRAPH = 7,
    kUNSUPPORTED_NODE = 8,
};

/// Number of values of ErrorCode.
template <>
inline int32_t EnumMax<ErrorCode>()
{
    return 9;
}

class TENSORRTAPI IParserError
{
public:
    virtual ErrorCode code() const = 0;

    virtual const char* desc() const = 0;

    virtual const char* file() const = 0;

    virtual int line() const = 0;

    virtual const char* func() const = 0;

    virtual int node() const = 0;

protected:
    virtual ~IParserError() noexcept {}
};

class TENSORRTAPI IParser
{
public:
    virtual bool parse(const void* serialized_onnx_model, size_t serialized_onnx_model_size,
                       const char* model_path = nullptr) = 0;

    virtual bool parseFromFile(const char* onnxModelFile, int verbosity) = 0;

    virtual bool supportsModel(const void* serialized_onnx_model, size_t serialized_onnx_model_size,
                               SubGraphCollection_t& sub_graph_collection, const char* model_path = nullptr) = 0;

    virtual bool parseWithWeightDescriptors(const void* serialized_onnx_model, size_t serialized_onnx_model_size) = 0;

    virtual bool supportsOperator(const char* op_name) const = 0;

    TRT_DEPRECATED virtual void destroy() = 0;

    virtual int getNbErrors() const = 0;

    virtual const IParserError* getError(int index) const = 0;

    virtual void clearErrors() = 0;

    virtual ~IParser() noexcept = default;
};

} // namespace nvonnxparser

extern "C" TENSORRTAPI void* createNvOnnxParser_INTERNAL(void* network, void* logger, int version);

extern "C" TENSORRTAPI int getNvOnnxParserVersion();

namespace nvonnxparser {

namespace {

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
