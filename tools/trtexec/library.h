// SPDX-License-Identifier: Apache-2.0
// The tool's side of the library: its logger, owned objects, and steps that fail when the library reports an error.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include <NvInfer.h>

#include "failure.h"
#include "log.h"
#include "options.h"

namespace tw::trtexec {

class LibraryLogger : public nvinfer1::ILogger
{
public:
    // A quiet logger makes every message a verbose one.
    explicit LibraryLogger(Log& log, bool quiet = false) : log_(log), quiet_(quiet) {}
    void log(Severity severity, nvinfer1::AsciiChar const* msg) noexcept override
    {
        noteMemory(msg ? msg : "");
        log_.fromLibrary(quiet_ ? Level::kVerbose : static_cast<Level>(severity), msg ? msg : "");
    }
    // The most that a build held on the device, as the library says it.
    uint64_t mostBytesOfBuilds() const { return uint64_t{mostMiB_.load()} << 20; }

private:
    void noteMemory(char const* message)
    {
        unsigned cpu = 0, device = 0;
        if (std::sscanf(message,
                        "[MemUsageStats] Peak memory usage of TRT CPU/GPU memory allocators: CPU %u MiB, GPU %u", &cpu,
                        &device) == 2 &&
            device > mostMiB_)
            mostMiB_ = device;
    }

    Log& log_;
    bool quiet_;
    std::atomic<unsigned> mostMiB_{0};
};

// Opens a library for the rest of the process; an error names `option`, which asks for it.
void* openLibrary(std::string const& path, std::string const& option);

// Runs `action`, then fails when the library logged an error meanwhile: many of its calls return nothing, and a flag
// that the library cannot honour must not pass in silence.
template <class F>
void libraryStep(Log& log, std::string const& what, F&& action)
{
    uint64_t const before = log.libraryErrors();
    action();
    if (log.libraryErrors() != before)
        throw LibraryFailure(what + " cannot be done");
}

// The same for what the library takes as a permission and answers with a warning where it has nothing after it: who
// asks for it on the command line wants it done.
template <class F>
void librarySupports(Log& log, std::string const& what, F&& action)
{
    uint64_t const before = log.libraryWarnings();
    libraryStep(log, what, action);
    if (log.libraryWarnings() != before)
        throw LibraryFailure(what + " cannot be done", true);
}

// The object, or LibraryFailure when the library gave none.
template <class T>
std::unique_ptr<T> required(T* object, std::string const& what)
{
    if (!object)
        throw LibraryFailure(what + " failed");
    return std::unique_ptr<T>(object);
}

std::string dimsText(nvinfer1::Dims const& dims); // 1x3x224x224
nvinfer1::Dims dimsOf(Shape const& shape, std::string const& what);
bool hasDynamicDim(nvinfer1::Dims const& dims);
// Product of the dimensions; Failure when one is negative or the product does not fit 63 bits.
int64_t volumeOf(nvinfer1::Dims const& dims, std::string const& what);
size_t bytesPerElement(nvinfer1::DataType type);
char const* dataTypeText(nvinfer1::DataType type);

} // namespace tw::trtexec
