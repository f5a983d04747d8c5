// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORWRIGHT_NV_CAFFE_PARSER_H
#define TENSORWRIGHT_NV_CAFFE_PARSER_H

#include "NvInfer.h"

#if defined(__GNUC__)
// Deprecated names are declared with the help of other deprecated names; only uses in client code shall warn.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvcaffeparser1 {

class TENSORRTAPI IBlobNameToTensor
{
public:
    virtual nvinfer1::ITensor* find(const char* name) const noexcept = 0;

protected:
    virtual ~IBlobNameToTensor() noexcept {}
};

class TENSORRTAPI IBinaryProtoBlob
{
public:
    virtual const void* getData() noexcept = 0;

    virtual nvinfer1::Dims4 getDimensions() noexcept = 0;

    virtual nvinfer1::DataType getDataType() noexcept = 0;

    TRT_DEPRECATED virtual void destroy() noexcept = 0;

    virtual ~IBinaryProtoBlob() noexcept = default;
};

class TENSORRTAPI IPluginFactoryV2
{
public:
    virtual bool isPluginV2(const char* layerName) noexcept = 0;

    virtual nvinfer1::IPluginV2* createPlugin(const char* layerName, const nvinfer1::Weights* weights,
                                              int32_t nbWeights, const char* libNamespace = "") noexcept = 0;

    virtual ~IPluginFactoryV2() noexcept = default;
};

class TENSORRTAPI ICaffeParser
{
public:
    virtual const IBlobNameToTensor* parse(const char* deploy, const char* model, nvinfer1::INetworkDefinition& network,
                                           nvinfer1::DataType weightType) noexcept = 0;

    virtual const IBlobNameToTensor* parseBuffers(const uint8_t* deployBuffer, std::size_t deployLength,
                                                  const uint8_t* modelBuffer, std::size_t modelLength,
                                                  nvinfer1::INetworkDefinition& network,
                                                  nvinfer1::DataType weightType) noexcept = 0;

    virtual IBinaryProtoBlob* parseBinaryProto(const char* fileName) noexcept = 0;

    virtual void setProtobufBufferSize(size_t size) noexcept = 0;

    TRT_DEPRECATED virtual void destroy() noexcept = 0;

    virtual void setPluginFactoryV2(IPluginFactoryV2* factory) noexcept = 0;

    virtual void setPluginNamespace(const char* libNamespace) noexcept = 0;

    virtual ~ICaffeParser() noexcept = default;

    virtual void setErrorRecorder(nvinfer1::IErrorRecorder* recorder) noexcept = 0;
    virtual nvinfer1::IErrorRecorder* getErrorRecorder() const noexcept = 0;
};

TENSORRTAPI ICaffeParser* createCaffeParser() noexcept;

TENSORRTAPI void shutdownProtobufLibrary() noexcept;

} // namespace nvcaffeparser1

extern "C" TENSORRTAPI void* createNvCaffeParser_INTERNAL() noexcept;

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif
