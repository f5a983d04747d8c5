// SPDX-License-Identifier: Apache-2.0
#include "api/report.h"

using namespace tw;
using namespace tw::api;

namespace tw::api {

namespace {

char const* nameOf(ErrorCode code)
{
    static constexpr char const* kNames[] = {
        // in the order of ErrorCode
        "Success",
        "Unspecified Error",
        "Internal Error",
        "API Usage Error (Invalid Argument)",
        "API Usage Error (Invalid Config)",
        "Out Of Memory",
        "Failed Initialization",
        "Failed Execution",
        "Failed Computation",
        "API Usage Error (Invalid State)",
        "Unsupported State",
    };
    return size_t(code) < std::size(kNames) ? kNames[size_t(code)] : "Error";
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
    std::string const line = fmt::format("{}: {}: {}", static_cast<int>(e.code), nameOf(e.code), e.message);
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
