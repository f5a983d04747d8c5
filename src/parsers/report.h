// SPDX-License-Identifier: Apache-2.0
// Error lines of the old parsers: to the process-wide logger, as their factories take none, and to the recorder of the
// parser or, where it has none, that of the plugin registry. Without a builder or runtime there is no logger yet.
#pragma once

#include "NvInfer.h"
#include "importers/common/values.h"

namespace tw::parsers {

inline nvinfer1::ErrorCode codeOf(nvonnxparser::ErrorCode code)
{
    switch (code) {
    case nvonnxparser::ErrorCode::kINTERNAL_ERROR:
        return nvinfer1::ErrorCode::kINTERNAL_ERROR;
    case nvonnxparser::ErrorCode::kMEM_ALLOC_FAILED:
        return nvinfer1::ErrorCode::kFAILED_ALLOCATION;
    case nvonnxparser::ErrorCode::kUNSUPPORTED_GRAPH:
    case nvonnxparser::ErrorCode::kUNSUPPORTED_NODE:
        return nvinfer1::ErrorCode::kUNSUPPORTED_STATE;
    default:
        return nvinfer1::ErrorCode::kINVALID_ARGUMENT;
    }
}

// Holds a recorder with its reference count.
class Recorder
{
public:
    Recorder() = default;
    ~Recorder() { set(nullptr); }
    Recorder(Recorder const&) = delete;
    Recorder& operator=(Recorder const&) = delete;

    void set(nvinfer1::IErrorRecorder* recorder) noexcept
    {
        if (recorder)
            recorder->incRefCount();
        if (recorder_)
            recorder_->decRefCount();
        recorder_ = recorder;
    }
    nvinfer1::IErrorRecorder* get() const noexcept { return recorder_; }

    void report(nvinfer1::ErrorCode code, char const* message) const noexcept
    {
        if (nvinfer1::ILogger* logger = getLogger())
            logger->log(nvinfer1::ILogger::Severity::kERROR, message);
        nvinfer1::IPluginRegistry* const registry = getPluginRegistry();
        nvinfer1::IErrorRecorder* const recorder = recorder_  ? recorder_
                                                   : registry ? registry->getErrorRecorder()
                                                              : nullptr;
        if (recorder)
            recorder->reportError(code, message);
    }

private:
    nvinfer1::IErrorRecorder* recorder_ = nullptr;
};

} // namespace tw::parsers
