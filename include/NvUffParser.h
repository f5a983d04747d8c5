// SPDX-License-Identifier: Apache-2.0
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

enum class UffInputOrder : int32_t
{
    kNCHW = 0,
    kNHWC = 1,
    kNC = 2,
};

enum class FieldType : int32_t
{
    kFLOAT = 0,
    kINT32 = 1,
    kCHAR = 2,
    kDIMS = 4,
    kDATATYPE = 5,
    kUNKNOWN = 6,
};

class TENSORRTAPI FieldMap
{
public:
    const char* name;
    const void* data;
    FieldType type = FieldType::kUNKNOWN;
    int32_t length = 1;

    FieldMap(const char* name, const void* data, FieldType type, int32_t length = 1);
};

struct FieldCollection
{
    int32_t nbFields;
    const FieldMap* fields;
};

class TENSORRTAPI IUffParser
{
public:
    virtual bool registerInput(const char* inputName, nvinfer1::Dims inputDims, UffInputOrder inputOrder) noexcept = 0;

    virtual bool registerOutput(const char* outputName) noexcept = 0;

    virtual bool parse(const char* file, nvinfer1::INetworkDefinition& network,
                       nvinfer1::DataType weightsType = nvinfer1::DataType::kFLOAT) noexcept = 0;

    virtual bool parseBuffer(const char* buffer, std::size_t size, nvinfer1::INetworkDefinition& network,
                             nvinfer1::DataType weightsType = nvinfer1::DataType::kFLOAT) noexcept = 0;

    TRT_DEPRECATED virtual void destroy() noexcept = 0;

    virtual int32_t getUffRequiredVersionMajor() noexcept = 0;

    virtual int32_t getUffRequiredVersionMinor() noexcept = 0;

    virtual int32_t getUffRequiredVersionPatch() noexcept = 0;

    virtual void setPluginNamespace(const char* libNamespace) noexcept = 0;

    virtual ~IUffParser() noexcept = default;

    virtual void setErrorRecorder(nvinfer1::IErrorRecorder* recorder) noexcept = 0;
    virtual nvinfer1::IErrorRecorder* getErrorRecorder() const noexcept = 0;
};

TENSORRTAPI IUffParser* createUffParser() noexcept;

TENSORRTAPI void shutdownProtobufLibrary() noexcept;

} // namespace nvuffparser

extern "C" TENSORRTAPI void* createNvUffParser_INTERNAL() noexcept;

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif
