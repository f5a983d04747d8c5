// SPDX-License-Identifier: Apache-2.0
// Importer of Caffe models: a prototxt with the network and a binary file with the weights.
#ifndef TENSORWRIGHT_NV_CAFFE_PARSER_H
#define TENSORWRIGHT_NV_CAFFE_PARSER_H

#include "NvInfer.h"

#if defined(__GNUC__)
// Deprecated names are declared with the help of other deprecated names; only uses in client code shall warn.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvcaffeparser1 {

/// Finds the tensors of a parsed model by the names of its blobs. Owned by the parser.
class TENSORRTAPI IBlobNameToTensor
{
public:
    /// The tensor of a blob, or nullptr.
    virtual nvinfer1::ITensor* find(char const* name) const noexcept = 0;

protected:
    virtual ~IBlobNameToTensor() noexcept {}
};

/// Contents of a binaryproto file, such as a mean image.
class TENSORRTAPI IBinaryProtoBlob
{
public:
    /// First element. Owned by the object.
    virtual void const* getData() noexcept = 0;

    virtual nvinfer1::Dims4 getDimensions() noexcept = 0;

    virtual nvinfer1::DataType getDataType() noexcept = 0;

    /// Deletes the object; delete does the same.
    TRT_DEPRECATED virtual void destroy() noexcept = 0;

    virtual ~IBinaryProtoBlob() noexcept = default;
};

/// Makes plugins for layers of a model that the parser shall not import itself.
class TENSORRTAPI IPluginFactoryV2
{
public:
    /// Whether createPlugin() shall be called for this layer.
    virtual bool isPluginV2(char const* layerName) noexcept = 0;

    /// A plugin for the layer with its weights from the model.
    virtual nvinfer1::IPluginV2* createPlugin(char const* layerName, nvinfer1::Weights const* weights,
                                              int32_t nbWeights, char const* libNamespace = "") noexcept = 0;

    virtual ~IPluginFactoryV2() noexcept = default;
};

/// Imports Caffe models.
class TENSORRTAPI ICaffeParser
{
public:
    /// Imports from files: deploy is the prototxt, model the weights. weightType is the type of the stored weights.
    /// nullptr on error.
    virtual IBlobNameToTensor const* parse(char const* deploy, char const* model, nvinfer1::INetworkDefinition& network,
                                           nvinfer1::DataType weightType) noexcept = 0;

    /// As parse(), from memory.
    virtual IBlobNameToTensor const* parseBuffers(uint8_t const* deployBuffer, std::size_t deployLength,
                                                  uint8_t const* modelBuffer, std::size_t modelLength,
                                                  nvinfer1::INetworkDefinition& network,
                                                  nvinfer1::DataType weightType) noexcept = 0;

    /// Reads a binaryproto file; the caller deletes the result. nullptr on error.
    virtual IBinaryProtoBlob* parseBinaryProto(char const* fileName) noexcept = 0;

    /// Largest message in bytes that is accepted.
    virtual void setProtobufBufferSize(size_t size) noexcept = 0;

    /// Deletes the object; delete does the same.
    TRT_DEPRECATED virtual void destroy() noexcept = 0;

    /// Not owned; must outlive the parser.
    virtual void setPluginFactoryV2(IPluginFactoryV2* factory) noexcept = 0;

    /// Namespace in which plugins are looked up.
    virtual void setPluginNamespace(char const* libNamespace) noexcept = 0;

    virtual ~ICaffeParser() noexcept = default;

    /// Recorder of the errors of this object; its reference count is raised until it is replaced. nullptr takes it
    /// away.
    virtual void setErrorRecorder(nvinfer1::IErrorRecorder* recorder) noexcept = 0;
    virtual nvinfer1::IErrorRecorder* getErrorRecorder() const noexcept = 0;
};

/// A parser, or nullptr. The caller deletes it, after the networks that it filled are built: it owns their weights.
TENSORRTAPI ICaffeParser* createCaffeParser() noexcept;

/// Frees the memory of the protobuf library; no parser may be used afterwards.
TENSORRTAPI void shutdownProtobufLibrary() noexcept;

} // namespace nvcaffeparser1

/// createCaffeParser() with C linkage.
extern "C" TENSORRTAPI void* createNvCaffeParser_INTERNAL() noexcept;

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif
