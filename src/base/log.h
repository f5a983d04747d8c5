// SPDX-License-Identifier: Apache-2.0
// Where messages go. The API layer forwards to the user's ILogger; nothing below it prints.
#pragma once

#include <string>

#include "base/phrase.h"

namespace tw {

// Same numbers as nvinfer1::ILogger::Severity.
enum class Severity : int
{
    kInternalError = 0,
    kError = 1,
    kWarning = 2,
    kInfo = 3,
    kVerbose = 4,
};

class Log
{
public:
    virtual ~Log() = default;
    virtual void write(Severity severity, std::string const& message) = 0;

    void error(Word auto const&... parts) { write(Severity::kError, phrase(parts...)); }
    void warning(Word auto const&... parts) { write(Severity::kWarning, phrase(parts...)); }
    void info(Word auto const&... parts) { write(Severity::kInfo, phrase(parts...)); }
    void verbose(Word auto const&... parts) { write(Severity::kVerbose, phrase(parts...)); }
};

// Discards everything: tests and internal evaluations that report through their Result.
class NullLog final : public Log
{
public:
    void write(Severity, std::string const&) override {}
};

} // namespace tw
