// SPDX-License-Identifier: Apache-2.0
// Error lines of the old parsers: to the process-wide logger, as their factories take none, and to the recorder of the
// parser or, where it has none, that of the plugin registry. Without a builder or runtime there is no logger yet.
#pragma once

#include "NvInfer.h"

namespace tw::parsers {

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
