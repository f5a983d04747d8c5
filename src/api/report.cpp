// SPDX-License-Identifier: Apache-2.0
#include "api/report.h"

namespace tw::api {

namespace {

char const* nameOf(ErrorCode code)
{
    switch (code) {
    case ErrorCode::kSuccess:
        return "Success";
    case ErrorCode::kUnspecified:
        return "Unspecified Error";
    case ErrorCode::kInternal:
        return "Internal Error";
    case ErrorCode::kInvalidArgument:
        return "API Usage Error (Invalid Argument)";
    case ErrorCode::kInvalidConfig:
        return "API Usage Error (Invalid Config)";
    case ErrorCode::kFailedAllocation:
        return "Out Of Memory";
    case ErrorCode::kFailedInitialization:
        return "Failed Initialization";
    case ErrorCode::kFailedExecution:
        return "Failed Execution";
    case ErrorCode::kFailedComputation:
        return "Failed Computation";
    case ErrorCode::kInvalidState:
        return "API Usage Error (Invalid State)";
    case ErrorCode::kUnsupportedState:
        return "Unsupported State";
    }
    return "Error";
}

// A recorder's description has a limit; the log line has it all. Names may be UTF-8: no character is cut in two.
std::string describe(std::string const& message)
{
    size_t n = nvinfer1::IErrorRecorder::kMAX_DESC_LENGTH;
    if (message.size() <= n)
        return message;
    while (n > 0 && (static_cast<unsigned char>(message[n]) & 0xc0) == 0x80)
        --n;
    return message.substr(0, n);
}

} // namespace

void Reporter::write(Severity severity, std::string const& message)
{
    if (logger_)
        logger_->log(static_cast<nvinfer1::ILogger::Severity>(severity), message.c_str());
}

void Reporter::error(Error const& e)
{
    std::string const line = std::to_string(static_cast<int>(e.code)) + ": " + nameOf(e.code) + ": " + e.message;
    write(e.code == ErrorCode::kInternal ? Severity::kInternalError : Severity::kError, line);
    if (auto* r = recorder())
        r->reportError(static_cast<nvinfer1::ErrorCode>(e.code), describe(e.message).c_str());
}

void Reporter::setRecorder(nvinfer1::IErrorRecorder* recorder)
{
    if (recorder)
        recorder->incRefCount();
    if (auto* old = recorder_.exchange(recorder))
        old->decRefCount();
}

} // namespace tw::api
