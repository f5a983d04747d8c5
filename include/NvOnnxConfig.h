// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORWRIGHT_NV_ONNX_CONFIG_H
#define TENSORWRIGHT_NV_ONNX_CONFIG_H

#include "NvInfer.h"

#if defined(__GNUC__)
// Deprecated names are declared with the help of other deprecated names; only uses in client code shall warn.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvonnxparser {

class TENSORRTAPI IOnnxConfig
{
public:
    virtual ~IOnnxConfig() noexcept = default;

    using Verbosity = int32_t;

    virtual void setModelDtype(nvinfer1::DataType) noexcept = 0;
    virtual nvinfer1::DataType getModelDtype() const noexcept = 0;

    virtual const char* getModelFileName() const noexcept = 0;
    virtual void setModelFileName(const char* onnxFilename) noexcept = 0;

    virtual Verbosity getVerbosityLevel() const noexcept = 0;

    virtual void addVerbosity() noexcept = 0;

    virtual void reduceVerbosity() noexcept = 0;

    virtual void setVerbosityLevel(Verbosity) noexcept = 0;

    virtual const char* getTextFileName() const noexcept = 0;
    virtual void setTextFileName(const char* textFileName) noexcept = 0;

    virtual const char* getFullTextFileName() const noexcept = 0;
    virtual void setFullTextFileName(const char* fullTextFileName) noexcept = 0;

    virtual bool getPrintLayerInfo() const noexcept = 0;
    virtual void setPrintLayerInfo(bool) noexcept = 0;

    TRT_DEPRECATED virtual void destroy() noexcept = 0;
};

IOnnxConfig* createONNXConfig();

} // namespace nvonnxparser

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif
