// SPDX-License-Identifier: Apache-2.0
// Settings object of an ONNX import. The declarations are kept for old programs.
#ifndef TENSORWRIGHT_NV_ONNX_CONFIG_H
#define TENSORWRIGHT_NV_ONNX_CONFIG_H

#include "NvInfer.h"

#if defined(__GNUC__)
// Deprecated names are declared with the help of other deprecated names; only uses in client code shall warn.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#endif

namespace nvonnxparser {

/// Settings of an ONNX import: file names, type and verbosity.
class TENSORRTAPI IOnnxConfig
{
public:
    virtual ~IOnnxConfig() noexcept = default;

    /// Number of an ILogger::Severity; higher says more.
    using Verbosity = int32_t;

    /// Type of the weights.
    virtual void setModelDtype(nvinfer1::DataType) noexcept = 0;
    virtual nvinfer1::DataType getModelDtype() const noexcept = 0;

    virtual char const* getModelFileName() const noexcept = 0;

    /// Path of the ONNX file.
    virtual void setModelFileName(char const* onnxFilename) noexcept = 0;

    virtual Verbosity getVerbosityLevel() const noexcept = 0;

    /// One step more.
    virtual void addVerbosity() noexcept = 0;

    /// One step less.
    virtual void reduceVerbosity() noexcept = 0;

    virtual void setVerbosityLevel(Verbosity) noexcept = 0;

    virtual char const* getTextFileName() const noexcept = 0;

    /// File for a dump of the network without weights.
    virtual void setTextFileName(char const* textFileName) noexcept = 0;

    virtual char const* getFullTextFileName() const noexcept = 0;

    /// File for a dump of the network with weights.
    virtual void setFullTextFileName(char const* fullTextFileName) noexcept = 0;

    virtual bool getPrintLayerInfo() const noexcept = 0;

    /// Whether layers are logged.
    virtual void setPrintLayerInfo(bool) noexcept = 0;

    /// Deletes the object.
    TRT_DEPRECATED virtual void destroy() noexcept = 0;
};

/// Declared for old programs; no library defines it.
IOnnxConfig* createONNXConfig();

} // namespace nvonnxparser

#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#endif
