// SPDX-License-Identifier: Apache-2.0
// What a client of the API brings along: a logger that keeps its lines and a recorder that counts.
#pragma once

#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "NvInfer.h"

namespace tw::test {

class KeepingLogger final : public nvinfer1::ILogger
{
public:
    void log(Severity severity, nvinfer1::AsciiChar const* message) noexcept override
    {
        std::lock_guard lock(mutex_);
        lines.push_back({severity, message});
    }
    struct Line
    {
        Severity severity;
        std::string text;
    };
    std::vector<Line> lines;

    int count(Severity severity) const
    {
        int n = 0;
        for (Line const& l : lines)
            n += l.severity == severity;
        return n;
    }
    int errors() const { return count(Severity::kERROR) + count(Severity::kINTERNAL_ERROR); }
    int warnings() const { return count(Severity::kWARNING); }
    // The last line, which must be an error, else "".
    std::string lastError() const
    {
        return !lines.empty() && lines.back().severity <= Severity::kERROR ? lines.back().text : std::string();
    }

private:
    std::mutex mutex_;
};

class CountingRecorder final : public nvinfer1::IErrorRecorder
{
public:
    int32_t getNbErrors() const noexcept override { return int32_t(entries.size()); }
    nvinfer1::ErrorCode getErrorCode(int32_t i) const noexcept override { return entries[size_t(i)].code; }
    ErrorDesc getErrorDesc(int32_t i) const noexcept override { return entries[size_t(i)].text.c_str(); }
    bool hasOverflowed() const noexcept override { return false; }
    void clear() noexcept override { entries.clear(); }
    bool reportError(nvinfer1::ErrorCode code, ErrorDesc text) noexcept override
    {
        entries.push_back({code, text});
        return false;
    }
    RefCount incRefCount() noexcept override { return ++references; }
    RefCount decRefCount() noexcept override { return --references; }

    struct Entry
    {
        nvinfer1::ErrorCode code;
        std::string text;
    };
    std::vector<Entry> entries;
    std::atomic<int32_t> references{0};
};

inline nvinfer1::Dims dims(std::vector<int32_t> const& d)
{
    nvinfer1::Dims out{};
    for (int32_t v : d)
        out.d[out.nbDims++] = v;
    return out;
}

inline bool contains(std::string const& text, char const* part)
{
    return text.find(part) != std::string::npos;
}

} // namespace tw::test
