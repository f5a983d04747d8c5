// SPDX-License-Identifier: Apache-2.0
// The process-wide logger that getLogger() gives: the one of the first builder, runtime or refitter that still lives.
// Each of these holds a LoggerUse, so the pointer never outlives the object that it was given to.
#pragma once

#include "api/report.h"

namespace tw::api {

class LoggerUse
{
public:
    explicit LoggerUse(nvinfer1::ILogger* logger);
    ~LoggerUse();
    LoggerUse(LoggerUse const&) = delete;
    LoggerUse& operator=(LoggerUse const&) = delete;

private:
    nvinfer1::ILogger* logger_;
};

// Null, with an error line to the logger, unless the client was compiled for 8.5: `version` is what the inline
// factories pass. `what` names the factory.
bool checkClientVersion(nvinfer1::ILogger* logger, int32_t version, char const* what) noexcept;

} // namespace tw::api
