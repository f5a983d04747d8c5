// SPDX-License-Identifier: Apache-2.0
// Where messages go. The API layer forwards to the user's ILogger; nothing below it prints.
#pragma once

#include <string>
#include <utility>

#include <fmt/core.h>

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

    // A text as it is, or one with {} and what stands there, as fmt::format() has it.
    void error(std::string const& text) { write(Severity::kError, text); }
    void warning(std::string const& text) { write(Severity::kWarning, text); }
    void info(std::string const& text) { write(Severity::kInfo, text); }
    void verbose(std::string const& text) { write(Severity::kVerbose, text); }
    template <class... Args>
    void error(fmt::format_string<Args...> text, Args&&... args)
    {
        write(Severity::kError, fmt::format(text, std::forward<Args>(args)...));
    }
    template <class... Args>
    void warning(fmt::format_string<Args...> text, Args&&... args)
    {
        write(Severity::kWarning, fmt::format(text, std::forward<Args>(args)...));
    }
    template <class... Args>
    void info(fmt::format_string<Args...> text, Args&&... args)
    {
        write(Severity::kInfo, fmt::format(text, std::forward<Args>(args)...));
    }
    template <class... Args>
    void verbose(fmt::format_string<Args...> text, Args&&... args)
    {
        write(Severity::kVerbose, fmt::format(text, std::forward<Args>(args)...));
    }
};

// Discards everything: tests and internal evaluations that report through their Result.
class NullLog final : public Log
{
public:
    void write(Severity, std::string const&) override {}
};

} // namespace tw
